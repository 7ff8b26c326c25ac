/* Measures a text's bits per byte on a Llama2 checkpoint whose weights are rounded to 8 or 4 bits.
 */
#include "common/programs/decoder/perplexity.h"
#include "solutions/13_low_bit/decoder/stages.h"

int main(int argc, char **argv) {
    return perplexity_main(argc, argv, low_bit_stages());
}
