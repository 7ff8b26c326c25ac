/* The generate program with stages of the CPU reference, for tests. */
#include "common/programs/decoder/generate.h"
#include "common/programs/decoder/reference_stages.h"

int main(int argc, char **argv) {
    return generate_main(argc, argv, reference_stages());
}
