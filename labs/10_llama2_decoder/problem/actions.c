#include "labs/10_llama2_decoder/problem/actions.h"

static const struct sampling greedy = {1, 0.0f, 0.9f, 0};

enum status decoder_case_act(struct decoder_case *c, const struct decoder_action *action,
                             char *text, size_t size, struct error *error) {
    size_t position = action->position == ACTION_NEXT ? c->fed : (size_t)action->position;
    if (action->feed > 0) {
        return decoder_case_feed(c, (size_t)action->feed, position, text, size, error);
    }
    if (action->feed < 0) {
        return decoder_case_steps_at_once(c, (size_t)-action->feed, text, size, error);
    }
    struct sampling how = action->how != NULL ? *action->how : greedy;
    how.state = rng_u64(c->rng) | 1;
    return decoder_case_step_at(c, position, &how, NULL, text, size, error);
}

enum status decoder_case_act_all(struct decoder_case *c, const struct decoder_action *actions,
                                 size_t count, char *text, size_t size, struct error *error) {
    for (size_t i = 0; i < count && text[0] == '\0'; i++) {
        TRY(decoder_case_act(c, &actions[i], text, size, error));
    }
    return STATUS_OK;
}
