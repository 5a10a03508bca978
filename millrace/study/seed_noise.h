// What chance does to the mean of a figure over seeds, and what can be seen in spite of it. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace millrace::study {

inline constexpr double kAlpha = .05;  // of all tests; intervals are of 95 %
inline constexpr double kPower = .8;   // of what can be shown

/// Mean and standard deviation (n - 1) of some values; the deviation of one is NaN.
struct Moments {
  double mean = 0, deviation = 0;
};
/// REQUIRES: a value.
Moments moments(std::span<const double> values);

/// Two independent causes of chance in a mean over seeds, in the unit of the figure. With n seeds
/// the mean varies by the variance seeds^2 / n + images^2.
struct Noise {
  double seeds = 0;   // standard deviation of one seed's value, estimated from n of them
  double images = 0;  // standard deviation that the choice of the images gives to the mean
};

/// Half the width of the interval that holds the true mean with probability 1 - alpha: the root of
/// (t seeds)^2 / n + (z images)^2, with t for n - 1 degrees of freedom and z of the normal
/// distribution. Without noise of images it is Student's. It never holds the truth more seldom than
/// it says (docs/study.md has its coverage). REQUIRES: n >= 2.
double half_width(const Noise& noise, std::size_t n, double alpha = kAlpha);

/// The least alpha whose interval around `mean` leaves out 0: the p of a mean that is 0 in truth.
double p_of(double mean, const Noise& noise, std::size_t n);

/// How often n new seeds give an interval that leaves out 0, if the mean is `truth`: exact for
/// normal noise. Without noise of images it is the power of the paired t test.
double power(double truth, const Noise& noise, std::size_t n);

/// The least true mean that n seeds show with kPower.
double detectable(const Noise& noise, std::size_t n);

/// The fewest seeds, at least 2, that show a true mean with kPower; nothing if 100,000 do not.
std::optional<std::size_t> seeds_needed(double truth, const Noise& noise);

/// By how much the images would have to be more, for ever so many seeds to show a true mean with
/// kPower; 1 or less: they are enough. REQUIRES: truth is not 0.
double images_needed(double truth, const Noise& noise);

}  // namespace millrace::study
