// A folder of this user in a place where all users may write, such as /tmp or /dev/shm.
#pragma once

#include <filesystem>

#include "millrace/base/files.h"

namespace millrace {

/// Opens `folder`, and makes it with mode 0700 if it is missing. Returns no descriptor, with errno
/// EPERM, if it belongs to another user or others may write into it, and with errno ENOTDIR or
/// ELOOP if it is a file or a symbolic link. Others may not read it afterwards. Signal handlers may
/// call it.
UniqueFd open_private_folder(const char* folder);

/// Makes `folder` if it is missing, and checks it as open_private_folder does. Throws Error with
/// the reason why it is refused.
void make_private_folder(const std::filesystem::path& folder);

}  // namespace millrace
