"""doxygen's INPUT_FILTER: the public part of netcode.h, line for line, with comments that doxygen reads. What is in them is text: nothing of it
is a command or markup."""

import re
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    TEXT = file.read().split("#endif /* NETCODE_SINGLE_FILE_H */")[0] + "#endif\n"
# What doxygen would read as markup. It takes a backslash before most of them, but shows some of those.
ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def comment(match):
    """Behind code it describes that code, else what follows; a banner describes nothing."""
    words = re.sub(r"[\\@&<>#]|%(?=[A-Za-z])", lambda mark: ENTITIES.get(mark[0], "\\" + mark[0]), match[1])
    behind = TEXT[TEXT.rfind("\n", 0, match.start()) + 1 : match.start()].strip()
    return match[0] if re.match(r"\s*(----|====|clang-format)", words) else ("/**<" if behind else "/**") + words + "*/"


sys.stdout.write(re.sub(r"/\*(.*?)\*/", comment, TEXT, flags=re.S))
