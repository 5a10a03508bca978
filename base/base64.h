// Base64 encoding and decoding.
#pragma once

#include <string>
#include <string_view>

namespace millrace {

std::string to_base64(std::string_view bytes);
/// Skips white space. Throws Error for any other character outside the base64 alphabet.
std::string from_base64(std::string_view text);

}  // namespace millrace
