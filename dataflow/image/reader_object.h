// The shared object that decodes what TurboJPEG does not, opened on first use.
#pragma once

#include "millrace/dataflow/image_readers/image_readers.h"

namespace millrace {

/// The reader in image_readers.so (own_folders.h). The first call opens it, with libpng, libwebp
/// and libtiff. Throws Error if that cannot be done. Any thread.
ReadPicture& image_readers();

}  // namespace millrace
