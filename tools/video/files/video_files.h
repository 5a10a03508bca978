// The interface of video_files.so, which reads and writes the frames of video files with FFmpeg's
// libraries. It is a separate object, opened on first use, so that programs start without FFmpeg
// and run on machines that do not have it. It does not include other parts of Millrace.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace millrace {

/// Seconds per tick, as a fraction.
struct VideoClock {
  int numerator = 1, denominator = 30;
};

struct VideoFacts {
  int width = 0, height = 0;  // size in pixels as displayed, after the file's rotation
  std::int64_t frames = 0;    // count in the file's header, which may be wrong; 0 = unknown
  VideoClock clock;           // unit of the frames' times
};

/// Reads the frames of a video in display order. For one thread. Throws std::runtime_error; its
/// message continues a sentence that begins with the file's name.
class VideoReader {
 public:
  virtual ~VideoReader() = default;
  virtual const VideoFacts& facts() const = 0;
  /// Writes the next frame to `rgb`, width * height * 3 bytes, and returns its time in ticks, which
  /// increases from frame to frame; nullopt at the end.
  virtual std::optional<std::int64_t> read(std::uint8_t* rgb) = 0;
  /// Returns the fault that made parts of the file unusable, complete at the end of the file; empty
  /// = none.
  virtual std::string fault() const = 0;
};

/// Writes an MP4 file, in H.264 if the libraries can encode it, otherwise in MPEG-4. For one
/// thread. Throws std::runtime_error; its message continues a sentence that begins with the file's
/// name.
class VideoWriter {
 public:
  virtual ~VideoWriter() = default;
  /// Adds a frame. `time` must be later than that of the previous frame.
  virtual void write(const std::uint8_t* rgb, std::int64_t time) = 0;
  /// Completes the file after the last frame; without this call it cannot be played.
  virtual void finish() = 0;
};

struct VideoFiles {
  std::unique_ptr<VideoReader> (*open)(const std::string& file);
  std::unique_ptr<VideoWriter> (*create)(const std::string& file, int width, int height,
                                         VideoClock clock);
};

/// The symbol of the VideoFiles in the object.
inline constexpr const char* kVideoFiles = "millrace_video_files";

}  // namespace millrace
