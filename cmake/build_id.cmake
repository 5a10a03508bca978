# Writes a header with the release and a digest of the public headers, only where that changes:
#   cmake -DTEMPLATE=FILE.in -DOUT=FILE -DRELEASE=V "-DROOTS=DIR|DIR" "-DHEADERS=a.h b.h" -P build_id.cmake
# Each header is that of the first root which has it, as a compiler finds it.
separate_arguments(HEADERS)
string(REPLACE "|" ";" ROOTS "${ROOTS}")
set(digests "")
foreach(header IN LISTS HEADERS)
  set(digest missing)
  foreach(root IN LISTS ROOTS)
    if(EXISTS "${root}/${header}")
      file(SHA256 "${root}/${header}" digest)
      break()
    endif()
  endforeach()
  string(APPEND digests "${digest} ${header}\n")
endforeach()
string(SHA256 DIGEST "${digests}")
string(SUBSTRING "${DIGEST}" 0 16 DIGEST)
configure_file("${TEMPLATE}" "${OUT}" @ONLY)
