/* Writes text with a Llama2 checkpoint whose weights are rounded to 8 or 4 bits. */
#include "common/programs/decoder/generate.h"
#include "solutions/13_low_bit/decoder/stages.h"

int main(int argc, char **argv) {
    return generate_main(argc, argv, low_bit_stages());
}
