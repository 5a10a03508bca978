// CurveZMQ keys in files: NAME.key holds a secret key, NAME.pub the public key that belongs to it,
// 40 characters each (Z85). Who has a secret key proves it to the other side; no password is ever
// sent.
#pragma once

#include <filesystem>
#include <string>

namespace millrace::serving {

struct KeyPair {
  std::string public_key, secret_key;  // Z85
};

/// Makes a key pair and writes `name`.key, which only its owner may read, and `name`.pub. Throws
/// Error where one of them is there already or cannot be written.
void make_keys(const std::filesystem::path& name);

/// The pair of a secret key. Throws ConfigError where the file holds none, or others may read it.
KeyPair read_secret_key(const std::filesystem::path& file);

/// Throws ConfigError where the file holds no public key.
std::string read_public_key(const std::filesystem::path& file);

}  // namespace millrace::serving
