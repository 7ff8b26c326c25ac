/* generate on the CPU reference, for tests. */
#include "common/model/generate.h"

static enum status create(struct engine *engine, int threads, struct error *error) {
    (void)threads;
    enum status status = engine_reference_create(engine);
    return status == STATUS_OK ? STATUS_OK : error_set(error, status, "%s", status_message(status));
}

int main(int argc, char **argv) {
    return generate_main(argc, argv, create);
}
