# The nine rooms in the order of their dependencies (docs/architecture.md), and the include folder
# through which all code includes them as "millrace/ROOM/...": it has one symbolic link per room.
set(MILLRACE_ROOMS base coco dataflow models trainer tools callbacks plugins cli)
set(MILLRACE_INCLUDE ${PROJECT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${MILLRACE_INCLUDE}/millrace)
foreach(room IN LISTS MILLRACE_ROOMS)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${room} ${MILLRACE_INCLUDE}/millrace/${room} SYMBOLIC)
endforeach()
