/* generate on the CPU reference, for tests. */
#include "common/model/generate.h"

static enum status create(struct engine *engine, int threads, struct error *error) {
    (void)threads;
    enum status status = engine_reference_create(engine);
    return status == STATUS_OK ? STATUS_OK : error_set(error, status, "%s", status_message(status));
}

int main(int argc, char **argv) {
    const struct llama2_stage table[] = {{"reference", false, create}};
    const struct llama2_stages stages = {.table = table, .count = 1};
    return generate_main(argc, argv, &stages);
}
