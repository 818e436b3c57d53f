/*  Where a game server is, as Agones has it in the status of a GameServer and in the answer of its allocator: an
    `address`, `addresses` with a type each, and `ports` with names. agones.h beside it and ../backend/allocator.h use this.

    One header, for one program unit, after netcode.h; needs cJSON. */

#ifndef FLEET_AGONES_ADDRESS_H
#define FLEET_AGONES_ADDRESS_H

#include <cjson/cJSON.h>
#include <string.h>

#define AGONES_PORT_NAME "netcode" /* of several ports, the one of this name; else the first */

static int agones_is_address( const cJSON * item, struct netcode_address_t * address )
{
    return cJSON_IsString( item ) && netcode_parse_address( item->valuestring, address ) == NETCODE_OK &&
           !address->port;
}

/*  The address; where that is a host's name, which tokens can not carry, the first ExternalIP among the addresses that
    newer versions list. */
static int agones_find_address( const cJSON * from, struct netcode_address_t * address )
{
    const cJSON * each = NULL;
    if ( agones_is_address( cJSON_GetObjectItemCaseSensitive( from, "address" ), address ) )
        return 1;
    cJSON_ArrayForEach( each, cJSON_GetObjectItemCaseSensitive( from, "addresses" ) )
    {
        const cJSON * type = cJSON_GetObjectItemCaseSensitive( each, "type" );
        if ( cJSON_IsString( type ) && !strcmp( type->valuestring, "ExternalIP" ) &&
             agones_is_address( cJSON_GetObjectItemCaseSensitive( each, "address" ), address ) )
            return 1;
    }
    return 0;
}

/* 0 when there is none. */
static uint16_t agones_find_port( const cJSON * from )
{
    uint16_t found = 0;
    const cJSON * each = NULL;
    cJSON_ArrayForEach( each, cJSON_GetObjectItemCaseSensitive( from, "ports" ) )
    {
        const cJSON * name = cJSON_GetObjectItemCaseSensitive( each, "name" );
        const cJSON * port = cJSON_GetObjectItemCaseSensitive( each, "port" );
        int ours = cJSON_IsString( name ) && !strcmp( name->valuestring, AGONES_PORT_NAME );
        if ( !cJSON_IsNumber( port ) || !( port->valuedouble >= 1.0 && port->valuedouble <= 65535.0 ) ||
             port->valuedouble != (double) port->valueint )
            continue;
        if ( !found || ours )
            found = (uint16_t) port->valueint;
        if ( ours )
            break;
    }
    return found;
}

#endif
