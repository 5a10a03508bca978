# Writes a header with the git revision of the sources and its date, if its content changes:
#   cmake -DROOT=DIR -DOUT=FILE -P revision.cmake
execute_process(COMMAND git -C "${ROOT}" describe --always --dirty --abbrev=40 --exclude=*
                OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
execute_process(COMMAND git -C "${ROOT}" log -1 --format=%cs
                OUTPUT_VARIABLE day OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(CONFIGURE OUTPUT "${OUT}" CONTENT
     "#define MILLRACE_REVISION \"${revision}\"\n#define MILLRACE_REVISION_DAY \"${day}\"\n")
