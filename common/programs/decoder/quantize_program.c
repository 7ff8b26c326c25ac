#include "common/programs/decoder/quantize.h"

int main(int argc, char **argv) {
    return quantize_main(argc, argv);
}
