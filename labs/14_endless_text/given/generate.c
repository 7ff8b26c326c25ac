/* Writes text with a Llama2 checkpoint on an engine of this lab. */
#include "common/programs/decoder/generate.h"
#include "labs/14_endless_text/given/stages.h"

int main(int argc, char **argv) {
    return generate_main(argc, argv, endless_stages());
}
