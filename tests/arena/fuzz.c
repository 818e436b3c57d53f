/*  Fuzz target: whatever bytes come, the arena's readers return values within their bounds, and what they accept can be
    written and read again. The first byte chooses the reader; 32 snapshots are kept, so that differences find their base.
    Built and run by fuzz.sh, which begins with what `arena-unit --corpus` writes. */

#include "inputs.h"

int LLVMFuzzerTestOneInput( const uint8_t * data, size_t size );

int LLVMFuzzerTestOneInput( const uint8_t * data, size_t size )
{
    static struct arena_kept_t kept;
    int was_read;
    if ( kept.ring[0].tick == 0 )
        inputs_keep( &kept );
    if ( size < 1 || size > 4096 )
        return 0;
    const char * wrong = inputs_judge( data[0] % INPUTS_KINDS, data + 1, (int) size - 1, &kept, &was_read );
    if ( wrong ) {
        fprintf( stderr, "FINDING %s\n", wrong );
        abort();
    }
    return 0;
}
