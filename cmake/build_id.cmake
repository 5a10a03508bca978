# Writes a header with the release and a digest of the public headers, only where that changes:
#   cmake -DTEMPLATE=FILE.in -DOUT=FILE -DRELEASE=V -DROOT=DIR -DHEADERS="a.h b.h" -P build_id.cmake
separate_arguments(HEADERS)
set(digests "")
foreach(header IN LISTS HEADERS)
  file(SHA256 "${ROOT}/${header}" digest)
  string(APPEND digests "${digest} ${header}\n")
endforeach()
string(SHA256 DIGEST "${digests}")
string(SUBSTRING "${DIGEST}" 0 16 DIGEST)
configure_file("${TEMPLATE}" "${OUT}" @ONLY)
