// Bytes as base64.
#pragma once

#include <string>
#include <string_view>

namespace millrace {

std::string to_base64(std::string_view bytes);
/// White space is left out. Throws Error for other characters that do not belong there.
std::string from_base64(std::string_view text);

}  // namespace millrace
