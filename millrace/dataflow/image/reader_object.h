// The shared object that decodes what TurboJPEG does not, opened on first use.
#pragma once

#include "millrace/dataflow/image_readers/image_readers.h"

namespace millrace {

/// The reader in image_readers.so: beside the shared object that this code is in, such as a Python
/// module, or in millrace/ there; for a program in lib/millrace beside its folder. The first call
/// opens it, with libpng, libwebp and libtiff. Throws Error if that cannot be done. Any thread.
ReadPicture& image_readers();

}  // namespace millrace
