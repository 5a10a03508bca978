#include "trainer/detector.h"

namespace millrace {

Registry<DetectorFactory>& detectors() {
  static Registry<DetectorFactory> registry("detector");
  return registry;
}

}  // namespace millrace
