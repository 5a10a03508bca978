// A folder that only this user can access, below a world-writable folder such as /tmp or /dev/shm.
#pragma once

#include <filesystem>

#include "millrace/base/files.h"

namespace millrace {

/// Opens `folder` and creates it with mode 0700 if it is missing; removes access by other users.
/// Returns an empty descriptor and sets errno on failure: EPERM if the folder belongs to another
/// user or is writable by other users, ENOTDIR or ELOOP if it is a file or a symbolic link.
/// Async-signal-safe.
UniqueFd open_private_folder(const char* folder);

/// Creates `folder` if it is missing and checks it like open_private_folder. Throws Error with the
/// reason if the folder is refused.
void make_private_folder(const std::filesystem::path& folder);

}  // namespace millrace
