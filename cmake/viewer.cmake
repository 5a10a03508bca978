# Joins viewer.html of FOLDER with its style sheet and its modules into one page. Each module
# becomes a function that returns its exports; viewer/modules.txt lists the modules in the order of
# their imports. A .h file gets the text before and after @DATA@ as two C++ strings.
#   cmake -DFOLDER=tools/report -DOUT=viewer.html -P cmake/viewer.cmake     the page with @DATA@
#   cmake -DFOLDER=tools/report -DOUT=viewer_text.h -P cmake/viewer.cmake   its halves for C++
file(STRINGS ${FOLDER}/viewer/modules.txt modules)
list(TRANSFORM modules PREPEND viewer/)
set(script "const modules = {};\n")
foreach(name IN LISTS modules ITEMS viewer)
  get_filename_component(module ${name} NAME)
  file(READ ${FOLDER}/${name}.js text)
  string(REGEX REPLACE "\nimport ({[^}]*}) from \"[./a-z]*/([a-z]+)\\.js\";"
         "\nconst \\1 = modules.\\2;" text "${text}")
  string(REGEX MATCHALL "\nexport [a-z]+ [A-Za-z_]+" exports "${text}")
  list(TRANSFORM exports REPLACE "\nexport [a-z]+ " "")
  list(JOIN exports ", " exports)
  string(REGEX REPLACE "\nexport " "\n" text "${text}")
  string(APPEND script "modules.${module} = (() => {\n${text}return { ${exports} };\n})();\n")
endforeach()
file(READ ${FOLDER}/viewer.css style)
file(READ ${FOLDER}/viewer.html page)
string(REPLACE "<link rel=\"stylesheet\" href=\"viewer.css\">" "<style>\n${style}</style>"
       page "${page}")
string(REPLACE " src=\"viewer.js\"></script>" ">\n${script}</script>" page "${page}")
if(OUT MATCHES "\\.h$")
  string(FIND "${page}" "@DATA@" at)
  string(SUBSTRING "${page}" 0 ${at} head)
  math(EXPR at "${at} + 6")
  string(SUBSTRING "${page}" ${at} -1 tail)
  set(page "// tools/report, joined by cmake/viewer.cmake
#pragma once

#include <string_view>

namespace millrace::report {

inline constexpr std::string_view kViewerHead = R\"VIEWER(${head})VIEWER\";
inline constexpr std::string_view kViewerTail = R\"VIEWER(${tail})VIEWER\";

}  // namespace millrace::report
")
endif()
file(WRITE ${OUT} "${page}")
