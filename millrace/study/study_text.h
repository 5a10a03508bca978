// The result of a study for people in a terminal and for programs. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "millrace/study/study_result.h"

namespace millrace::study {

/// "box AP50" of "segm/AP50" and its like.
std::string title_of(const std::string& figure);

/// What runs of one variant say of the next one: the difference that as many seeds of another would
/// show. Text; empty with fewer than two seeds.
std::string outlook_text(const VariantResult& only);

/// Tables of figures, differences from the first variant, and what is left out.
std::string study_text(const StudyResult& result);

/// The same, and each run. AP and its kin are from 0 to 1, null where undefined.
nlohmann::ordered_json study_json(const StudyResult& result);

}  // namespace millrace::study
