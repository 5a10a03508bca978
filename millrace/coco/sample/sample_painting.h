// Paints a planned scene: surfaces, light, shadows, lens and film. Pure; any thread may call it.
#pragma once

#include <opencv2/core.hpp>

#include "millrace/base/random.h"
#include "millrace/coco/sample/sample_scene.h"

namespace millrace::coco {

/// The picture of a scene, blue green red. Where `Scene::owner` says a thing shows, it does.
cv::Mat3b paint(const Scene& scene, Rng& rng);

}  // namespace millrace::coco
