# Writes a header with what trainer-torch prints for some command lines, only where that changes:
#   cmake -DPROGRAM=FILE -DOUT=FILE -P known_texts.cmake
set(header "#pragma once\n#include <string_view>\nnamespace millrace::cli {\n")
foreach(known "kHelpText --help" "kListText list" "kListJson list --json")
  separate_arguments(words UNIX_COMMAND "${known}")
  list(POP_FRONT words name)
  execute_process(COMMAND "${PROGRAM}" ${words} OUTPUT_VARIABLE text RESULT_VARIABLE fault)
  if(fault)
    message(FATAL_ERROR "${PROGRAM} ${words}: ${fault}")
  endif()
  string(APPEND header "inline constexpr std::string_view ${name} = R\"~~(${text})~~\";\n")
endforeach()
file(WRITE "${OUT}.part" "${header}}  // namespace millrace::cli\n")
file(COPY_FILE "${OUT}.part" "${OUT}" ONLY_IF_DIFFERENT)
