// study.html: the result of a study as one page. Pure.
#pragma once

#include <filesystem>
#include <string>

#include "millrace/study/study_result.h"

namespace millrace::study {

/// The page; runs are linked from `folder`, where it will lie. Equal input gives equal bytes.
std::string study_page(const StudyResult& result, const std::filesystem::path& folder);

}  // namespace millrace::study
