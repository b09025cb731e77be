# SPDX-License-Identifier: Apache-2.0
# Makes a C file with the text of other files, for a command that must not depend on where it was built:
#   cmake -DOUT=sources.c -DROOT=... -DFILES=a.c;b/c.h -P embed.cmake
# Files are named by their paths below ROOT.
set(text "/* SPDX-License-Identifier: Apache-2.0 */\n#include \"bench/sources.h\"\n\n")
set(list "")
set(index 0)
foreach(file ${FILES})
  file(READ ${ROOT}/${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(................................................................................)"
    "\\1\n" bytes "${bytes}")
  string(APPEND text "static const uint8_t source_${index}[] = {${bytes}0};\n")
  string(APPEND list "    {\"${file}\", source_${index}, sizeof(source_${index}) - 1},\n")
  math(EXPR index "${index} + 1")
endforeach()
string(APPEND text "\nconst struct mr_source_file mr_source_files[] = {\n${list}};\n")
string(APPEND text "const size_t mr_source_file_count = ${index};\n")
file(WRITE ${OUT} "${text}")
