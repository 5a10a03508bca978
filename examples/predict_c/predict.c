/* predict_c MODEL IMAGE: prints the objects in an image, one per line. */
#include <millrace_predict.h>
#include <stdio.h>

int main(int argc, char** argv) {
  millrace_predictor* predictor = NULL;
  millrace_result* result = NULL;
  if (argc != 3 || millrace_predict_open(argv[1], NULL, &predictor) != MILLRACE_OK ||
      millrace_predict_file(predictor, argv[2], &result) != MILLRACE_OK) {
    fprintf(stderr, "predict_c: %s\n",
            argc == 3 ? millrace_predict_error() : "usage: predict_c MODEL IMAGE");
    return 1;
  }
  millrace_object found;
  for (int32_t i = 0; i < millrace_result_count(result); ++i) {
    millrace_result_object(result, i, &found);
    printf("%s %.3f at %.1f %.1f %.1f %.1f\n",
           millrace_predict_class_name(predictor, found.label), found.score, found.x1, found.y1,
           found.x2, found.y2);
  }
  millrace_result_close(result);
  millrace_predict_close(predictor);
}
