// Functions of floats that compilers can vectorize, unlike those of the C library.
#pragma once

#include <bit>

namespace millrace {

/// Returns exp(x) within 2e-7 for |x| <= 87 (Cephes' expf).
inline float exponential(float x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float n = (x * 1.44269504F + kRound) - kRound;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1;
  return p * std::bit_cast<float>((static_cast<int>(n) + 127) << 23);
}

/// Returns log(1 + t) within 3e-7, relative, for 0 <= t <= 1: the series of 2 artanh(t / (2 + t)).
inline float log_one_plus(float t) {
  const float s = t / (2 + t), square = s * s;
  float p = 2.0F / 15;
  p = p * square + 2.0F / 13;
  p = p * square + 2.0F / 11;
  p = p * square + 2.0F / 9;
  p = p * square + 2.0F / 7;
  p = p * square + 2.0F / 5;
  p = p * square + 2.0F / 3;
  return s * (p * square + 2);
}

}  // namespace millrace
