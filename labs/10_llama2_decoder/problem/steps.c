#include "labs/10_llama2_decoder/problem/steps.h"

enum status decoder_start_steps(const struct decoder_steps_call *call,
                                enum status (*step)(struct decoder *decoder, size_t position,
                                                    struct error *error),
                                struct error *error) {
    for (size_t i = 0; i < call->count; i++) {
        TRY(step(call->decoder, call->position + i, error));
        if (call->drawn != NULL) {
            TRY(device_copy(call->drawn + i, call->token, sizeof *call->drawn, call->stream,
                            error));
        }
    }
    return STATUS_OK;
}
