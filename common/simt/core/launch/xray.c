/*
 * Records of a launch for x-ray: which instructions and sites a kernel has.
 */
#include "common/simt/core/launch/module.h"

enum status simt_xray_prepare(struct simt_xray *xray, const struct simt_kernel *kernel,
                              struct error *error) {
    if (xray == NULL || xray->instructions != NULL) {
        return STATUS_OK;
    }
    if (!simt_xray_create(xray, kernel->instruction_count, kernel->site_count)) {
        simt_xray_free(xray);
        return error_set(error, STATUS_OUT_OF_MEMORY, "%s: no memory for an x-ray of it",
                         kernel->function->name);
    }
    for (size_t f = 0; f < kernel->code_count; f++) {
        const struct simt_code *code = kernel->codes[f];
        for (size_t n = 0; n < code->count; n++) {
            xray->instructions[code->first + n].instruction = &code->instructions[n];
        }
    }
    return STATUS_OK;
}
