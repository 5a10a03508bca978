# Writes a header with the release and a digest of the declarations in the public headers, if its
# content changes:
#   cmake -DTEMPLATE=FILE.in -DOUT=FILE -DRELEASE=V "-DROOTS=DIR|DIR" "-DHEADERS=a.h b.h"
#         -P build_id.cmake
# Each header is taken from the first root that has it, as a compiler would. Comments and white
# space do not count, so that an edited comment does not make plug-ins incompatible.
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
