# CPack runs this between `cmake --install` and packing. It makes the installation conform to
# Debian's policy and removes the files that only compiling plug-ins and other programs needs.
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr)
set(doc ${root}/share/doc/millrace)

file(GLOB compiled_with ${root}/include ${root}/lib/cmake ${root}/lib/libmillrace_predict*
     ${root}/share/millrace/examples ${root}/bin/*_test)
if(compiled_with)
  file(REMOVE_RECURSE ${compiled_with})
endif()

# With this file, `trainer` searches for libtorch at each start.
file(WRITE ${root}/lib/millrace/libtorch-version "${CPACK_MILLRACE_LIBTORCH}\n")
file(GLOB objects ${root}/bin/trainer* ${root}/bin/gpu_tests ${root}/lib/millrace/*.so
     ${root}/lib/millrace/plugins/*.so)
foreach(object IN LISTS objects)
  file(RPATH_REMOVE FILE ${object})
endforeach()
execute_process(COMMAND strip --strip-unneeded ${objects} COMMAND_ERROR_IS_FATAL ANY)

file(MAKE_DIRECTORY ${root}/share/zsh/vendor-completions)
file(RENAME ${root}/share/zsh/site-functions/_trainer ${root}/share/zsh/vendor-completions/_trainer)
file(REMOVE_RECURSE ${root}/share/zsh/site-functions)
execute_process(COMMAND gzip -9n ${root}/share/man/man1/trainer.1 COMMAND_ERROR_IS_FATAL ANY)
file(CREATE_LINK trainer.1.gz ${root}/share/man/man1/trainer-torch.1.gz SYMBOLIC)

file(READ ${CPACK_MILLRACE_SOURCES}/NOTICE notice)
string(REGEX MATCH "Copyright ([^\n]*)" line "${notice}")
file(WRITE ${doc}/copyright
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Millrace

Files: *
Copyright: ${CMAKE_MATCH_1}
License: Apache-2.0

License: Apache-2.0
 On Debian systems, the text of the Apache License, Version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.
")
file(REMOVE ${doc}/LICENSE)
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)  # or SOURCE_DATE_EPOCH
file(WRITE ${doc}/changelog
"${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Built from source; CHANGELOG.md lists the changes.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
execute_process(COMMAND gzip -9n ${doc}/changelog COMMAND_ERROR_IS_FATAL ANY)

# Permissions must not depend on the builder's umask.
file(GLOB_RECURSE files LIST_DIRECTORIES true ${root}/*)
foreach(file IN LISTS root files)
  if(IS_SYMLINK ${file})
    continue()
  elseif(IS_DIRECTORY ${file} OR file MATCHES "/bin/[^/]*$" OR file MATCHES "\\.py$")
    file(CHMOD ${file} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                   WORLD_READ WORLD_EXECUTE)
  else()
    file(CHMOD ${file} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  endif()
endforeach()
