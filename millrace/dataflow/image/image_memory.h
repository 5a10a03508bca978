// Memory behind the images of a flow.
#pragma once

namespace millrace {

/// From now on every cv::Mat of this process large enough to matter takes its pixels from one
/// BufferPool: fresh pages cost a quarter of what resizing an image costs. Thread-safe, and the
/// same however often called.
void pool_images();

}  // namespace millrace
