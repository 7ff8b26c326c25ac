/* Writes text with a Llama2 checkpoint on the engine of this stage. */
#include "common/model/generate.h"
#include "labs/01_cpu_matmul/engine.h"

int main(int argc, char **argv) {
    return generate_main(argc, argv, engine_cpu_matmul_create);
}
