// What video_files.so does: frames out of video files and into them, by FFmpeg's libraries. It is
// an object of its own, opened on first use, so that programs start without these and run on
// machines that lack them. It includes no other part of Millrace.
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
  int width = 0, height = 0;  // pixels, as it is shown: turned as the file asks
  std::int64_t frames = 0;    // by its head, which may be wrong; 0: not known
  VideoClock clock;           // of the frames' times
};

/// Frames in the order in which they are shown. For one thread. Throws std::runtime_error with
/// words that follow the file's name.
class VideoReader {
 public:
  virtual ~VideoReader() = default;
  virtual const VideoFacts& facts() const = 0;
  /// Puts the next frame into `rgb`, width * height * 3 bytes, and returns its time in ticks, which
  /// grows from frame to frame; nullopt at the end.
  virtual std::optional<std::int64_t> read(std::uint8_t* rgb) = 0;
  /// The part of the file that could not be used, known at the end; empty if none.
  virtual std::string fault() const = 0;
};

/// An MP4 file: H.264 if the libraries can write that, else MPEG-4. For one thread. Throws
/// std::runtime_error with words that follow the file's name.
class VideoWriter {
 public:
  virtual ~VideoWriter() = default;
  /// Adds a frame with a later time than the last one's.
  virtual void write(const std::uint8_t* rgb, std::int64_t time) = 0;
  /// Call after the last frame; a file without it cannot be played.
  virtual void finish() = 0;
};

struct VideoFiles {
  std::unique_ptr<VideoReader> (*open)(const std::string& file);
  std::unique_ptr<VideoWriter> (*create)(const std::string& file, int width, int height,
                                         VideoClock clock);
};

/// The name of the VideoFiles in the object.
inline constexpr const char* kVideoFiles = "millrace_video_files";

}  // namespace millrace
