# Writes a header with the release and a digest of what the public headers declare, only where that
# changes:
#   cmake -DTEMPLATE=FILE.in -DOUT=FILE -DRELEASE=V "-DROOTS=DIR|DIR" "-DHEADERS=a.h b.h"
#         -P build_id.cmake
# Each header is that of the first root which has it, as a compiler finds it. Comments and white
# space do not count: an edited sentence refuses no plug-in.
separate_arguments(HEADERS)
string(REPLACE "|" ";" ROOTS "${ROOTS}")
set(declarations "")
foreach(header IN LISTS HEADERS)
  set(text missing)
  foreach(root IN LISTS ROOTS)
    if(EXISTS "${root}/${header}")
      file(READ "${root}/${header}" text)
      string(REGEX REPLACE "/\\*[^*]*\\*+([^/*][^*]*\\*+)*/|//[^\n]*" " " text "${text}")
      string(REGEX REPLACE "[ \t\r\n]+" " " text "${text}")
      string(STRIP "${text}" text)
      break()
    endif()
  endforeach()
  string(SHA256 digest "${text}")
  string(APPEND declarations "${digest} ${header}\n")
endforeach()
string(SHA256 DIGEST "${declarations}")
string(SUBSTRING "${DIGEST}" 0 16 DIGEST)
configure_file("${TEMPLATE}" "${OUT}" @ONLY)
