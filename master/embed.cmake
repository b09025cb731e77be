# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a C file with the page's files as byte arrays: cmake -DOUTPUT=... -DINDEX=... -DSTYLE=...
# -DSCRIPT=... -P embed.cmake. Bytes, not strings: no compiler has a limit on them, and nothing needs escaping.
function(add_file name file)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "((0x[0-9a-f][0-9a-f],){16})" "\\1\n    " bytes "${bytes}")
  set(text "${text}static const uint8_t ${name}[] = {\n    ${bytes}\n};\n" PARENT_SCOPE)
endfunction()

set(text "/* Made by master/embed.cmake from master/web/. */\n#include \"master/page.h\"\n\n")
add_file(page_index ${INDEX})
add_file(page_style ${STYLE})
add_file(page_script ${SCRIPT})
string(APPEND text "
const struct mr_page_file mr_page_files[] = {
    {\"/\", \"text/html; charset=utf-8\", page_index, sizeof(page_index)},
    {\"/style.css\", \"text/css; charset=utf-8\", page_style, sizeof(page_style)},
    {\"/page.js\", \"text/javascript; charset=utf-8\", page_script, sizeof(page_script)},
};
const size_t mr_page_file_count = sizeof(mr_page_files) / sizeof(mr_page_files[0]);
")
file(WRITE ${OUTPUT} "${text}")
