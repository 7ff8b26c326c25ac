/* Writes text with a Llama2 checkpoint on an engine of the course. */
#include "common/model/generate.h"
#include "labs/10_llama2_decoder/stages.h"

int main(int argc, char **argv) {
    return generate_main(argc, argv, llama2_stages_of_the_course());
}
