#include "common/train/program/train_program.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>

#include "common/base/file.h"
#include "common/programs/program.h"
#include "common/train/program/train_evaluate.h"
#include "common/train/program/train_run_internal.h"

/* ---- A step ---- */

/* Advances the position in the run by one step of `count` batches. */
static void advance(struct train_run *r, uint64_t count) {
    r->point.step++;
    r->point.batch += count;
    if (r->point.batch == r->batch_count) {
        r->point.batch = 0;
        r->point.epoch++;
    }
}

/* Fills the batches of the next step. @return 1 / number of labels; 0: there are no labels */
static float fill(struct train_run *r, uint64_t count, uint64_t *tokens) {
    size_t asked = 0;
    *tokens = 0;
    for (uint64_t i = 0; i < count; i++) {
        train_batches_fill(&r->batches, r->point.epoch, r->point.batch + i, &r->memory[i]);
        asked += r->memory[i].asked;
        *tokens += r->memory[i].rows;
    }
    return asked > 0 ? 1.0f / (float)asked : 0.0f;
}

static struct train_update update_of(const struct train_run *r) {
    const struct train_options *o = r->options;
    uint64_t step = r->point.step + 1;
    return (struct train_update){
        .rate = (float)train_schedule_rate(&r->schedule, step),
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .eps = o->eps,
        .decay = o->decay,
        .most_norm = o->clip,
        .step = step,
    };
}

/* The batches of a step are dealt out to the ranks in turn. */
static enum status run_batches(struct train_run *r, uint64_t count, float scale,
                               const struct train_update *update, struct error *error) {
    uint64_t most = train_run_batches(r), ranks = (uint64_t)ranks_count(r->ranks);
    for (uint64_t i = (uint64_t)ranks_rank(r->ranks); i < count; i += ranks) {
        uint32_t pass = (uint32_t)(r->point.step * most + i);
        if (i + ranks >= count) {
            train_model_last_pass(r->model);
        }
        TRY(train_model_backward(r->model, &r->memory[i].batch, scale, r->options->seed, pass,
                                 error));
    }
    return train_model_update(r->model, update, error);
}

static enum status run_only_batch(struct train_run *r, float scale,
                                  const struct train_update *update, struct error *error) {
    uint32_t pass = (uint32_t)(r->point.step * train_run_batches(r));
    return train_model_step(r->model, &r->memory[0].batch, scale, r->options->seed, pass, update,
                            error);
}

static enum status step(struct train_run *r, struct error *error) {
    uint64_t most = train_run_batches(r), left = r->batch_count - r->point.batch;
    uint64_t count = left < most ? left : most;
    uint64_t tokens;
    float scale = fill(r, count, &tokens);
    const struct train_update update = update_of(r);
    bool only = count == 1 && ranks_count(r->ranks) == 1;
    TRY(only ? run_only_batch(r, scale, &update, error)
             : run_batches(r, count, scale, &update, error));
    advance(r, count);
    r->point.loss_steps++;
    if (train_run_speaks(r)) {
        train_report_progress(&r->report, r->point.step, r->last_loss, tokens);
    }
    return STATUS_OK;
}

/* ---- Between steps ---- */

static double epochs_done(const struct train_run *r) {
    return (double)r->point.epoch + (double)r->point.batch / (double)r->batch_count;
}

/* Ends a run that has diverged. */
static enum status check_loss(const struct train_run *r, struct error *error) {
    if (!isfinite(r->point.loss_sum) || !isfinite(r->point.loss_left) || !isfinite(r->norm)) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "the loss or the gradient is no longer finite at step %" PRIu64
                         ": a lower --lr, a longer --warmup or --clip may help",
                         r->point.step);
    }
    return STATUS_OK;
}

/* Adds up the ranks' parts of a loss, in their order. All ranks have done their work then. */
static enum status add_up(struct train_run *r, double *loss, struct error *error) {
    if (r->ranks == NULL) {
        return STATUS_OK;
    }
    double mine = *loss;
    r->point.ranks = (size_t)ranks_count(r->ranks);
    TRY(ranks_all_gather(r->ranks, &mine, sizeof mine, r->point.of_rank, error));
    *loss = 0.0;
    for (size_t i = 0; i < r->point.ranks; i++) {
        *loss += r->point.of_rank[i];
    }
    return STATUS_OK;
}

/* Takes the accumulated loss from the model. */
static enum status collect(struct train_run *r, struct error *error) {
    double loss;
    TRY(train_model_take_loss(r->model, &loss, &r->norm, error));
    TRY(add_up(r, &loss, error));
    r->point.loss_sum += loss;
    r->point.loss_left = 0.0;
    return check_loss(r, error);
}

static enum status report_steps(struct train_run *r, struct error *error) {
    TRY(collect(r, error));
    r->last_loss = r->point.loss_sum / (double)r->point.loss_steps;
    const struct train_news news = {
        .step = r->point.step,
        .epoch = epochs_done(r),
        .loss = r->last_loss,
        .norm = r->norm,
        .rate = train_schedule_rate(&r->schedule, r->point.step),
    };
    r->point.loss_sum = 0.0;
    r->point.loss_steps = 0;
    return train_run_speaks(r) ? train_report_steps(&r->report, &news, error) : STATUS_OK;
}

static enum status evaluate_here(struct train_run *r, struct error *error) {
    struct train_result result;
    TRY(train_evaluate(r->model, &r->evaluation, &r->memory[0], r->config.bert.labels, &result,
                       error));
    double score = train_result_score(&result);
    bool best = r->options->train && (!r->point.has_best || score > r->point.best);
    double epochs = r->options->train ? epochs_done(r) : 0.0;
    TRY(train_report_result(&r->report, &result, r->point.step, epochs, best, error));
    if (!best) {
        return STATUS_OK;
    }
    r->point.has_best = true;
    r->point.best = score;
    r->point.best_step = r->point.step;
    const struct train_subject subject = train_run_subject(r);
    ranks_hold(r->ranks);
    enum status status = train_model_save(&r->store, &subject, "best", error);
    ranks_release(r->ranks);
    return status;
}

/* Rank 0 evaluates; the others learn whether a signal has cut it off. */
static enum status evaluate(struct train_run *r, struct error *error) {
    ranks_phase(r->ranks, "evaluating");
    enum status status = train_run_speaks(r) ? evaluate_here(r, error) : STATUS_OK;
    uint32_t interrupted = status == STATUS_INTERRUPTED;
    if (status != STATUS_OK && !interrupted) {
        return status;
    }
    TRY(ranks_largest(r->ranks, &interrupted, error));
    ranks_phase(r->ranks, "training");
    return interrupted ? STATUS_INTERRUPTED : STATUS_OK;
}

/* Rank 0 writes, and reads what it needs of the others' memory. */
static enum status write_checkpoint(struct train_run *r, struct error *error) {
    const struct train_subject subject = train_run_subject(r);
    if (!train_run_speaks(r)) {
        r->store.has_checkpoint = true;
        r->store.step = r->point.step;
        return STATUS_OK;
    }
    ranks_hold(r->ranks);
    enum status status = train_checkpoint_write(&r->store, &subject, &r->point, error);
    ranks_release(r->ranks);
    return status;
}

static enum status checkpoint(struct train_run *r, struct error *error) {
    train_report_clear(&r->report);
    /* Does not reset the loss: an additional checkpoint after a signal must not change how the sum
       is rounded. */
    TRY(train_model_read_loss(r->model, &r->point.loss_left, &r->norm, error));
    TRY(add_up(r, &r->point.loss_left, error));
    TRY(check_loss(r, error));
    ranks_phase(r->ranks, "writing a checkpoint");
    TRY(write_checkpoint(r, error));
    TRY(ranks_all_gather(r->ranks, NULL, 0, NULL, error));
    ranks_phase(r->ranks, "training");
    return STATUS_OK;
}

/* After the line of a step: evaluates and writes a checkpoint, if it is time for them. */
static enum status finish_step(struct train_run *r, struct error *error) {
    const struct train_options *o = r->options;
    bool last = r->point.step == r->schedule.total;
    bool epoch = r->point.batch == 0;
    bool save = o->save_every > 0 ? r->point.step % o->save_every == 0 : epoch;
    bool look = o->eval_every > 0 ? r->point.step % o->eval_every == 0 : epoch;
    if (o->evaluate && (look || last)) {
        TRY(collect(r, error));
        r->point.evaluates = true;
        TRY(evaluate(r, error));
        r->point.evaluates = false;
    }
    if (save || last) {
        TRY(checkpoint(r, error));
    }
    if (save || look || last) {
        train_report_restart(&r->report);
    }
    return STATUS_OK;
}

static enum status after_step(struct train_run *r, struct error *error) {
    bool last = r->point.step == r->schedule.total;
    if (r->point.step % r->options->log_every == 0 || last) {
        TRY(report_steps(r, error));
    }
    return finish_step(r, error);
}

/* Writes a checkpoint after a signal. */
static enum status stop(struct train_run *r, struct error *error) {
    if (r->store.step != r->point.step || !r->store.has_checkpoint) {
        TRY(checkpoint(r, error));
    }
    return error_set(error, STATUS_INTERRUPTED,
                     "interrupted at step %" PRIu64 " of %" PRIu64 ": continue with --resume",
                     r->point.step, r->schedule.total);
}

/* All steps that are left. @return STATUS_INTERRUPTED after a signal */
static enum status run_steps(struct train_run *r, struct error *error) {
    if (r->point.evaluates) { /* what the signal before the resumption cut off */
        TRY(finish_step(r, error));
    }
    while (r->point.step < r->schedule.total) {
        uint32_t seen = interrupt_seen() != 0;
        TRY(ranks_largest(r->ranks, &seen, error)); /* all stop at the same step */
        if (seen != 0) {
            return STATUS_INTERRUPTED;
        }
        TRY(step(r, error));
        TRY(after_step(r, error));
    }
    return STATUS_OK;
}

static enum status train(struct train_run *r, struct error *error) {
    enum status status = run_steps(r, error);
    if (status == STATUS_INTERRUPTED) {
        return stop(r, error);
    }
    TRY(status);
    if (!train_run_speaks(r)) {
        return STATUS_OK;
    }
    train_report_clear(&r->report);
    const struct train_subject subject = train_run_subject(r);
    ranks_hold(r->ranks);
    status = train_model_save(&r->store, &subject, "final", error);
    ranks_release(r->ranks);
    TRY(status);
    printf("step %" PRIu64 ": the model is in %s/final%s\n", r->point.step, r->store.folder,
           r->point.has_best ? ", the best one in best" : "");
    return STATUS_OK;
}

static enum status run_all(struct train_run *r, const struct train_places *places,
                           struct error *error) {
    TRY(train_run_prepare(r, places, error));
    interrupt_watch(); /* before this Ctrl-C ends the program at once, as nothing can be lost */
    TRY(r->options->train ? train(r, error) : evaluate(r, error));
    if (r->options->profile) {
        train_profile_print(&r->profile, r->where.modelled, stdout);
    }
    return STATUS_OK;
}

/* Trains and evaluates as the options say. @return STATUS_INTERRUPTED after a signal, when a
   checkpoint has been written */
static enum status run(const struct train_options *options, struct ranks *ranks,
                       const struct train_places *places, struct error *error) {
    struct train_run run = {.options = options, .ranks = ranks};
    enum status status = run_all(&run, places, error);
    bool well = status == STATUS_OK || status == STATUS_INTERRUPTED;
    if (!well) {
        train_store_discard(&run.store);
    }
    if (well || ranks == NULL) {
        train_run_free(&run); /* collective: others do not come when one has failed */
    }
    return status;
}

/* ---- The program ---- */

static enum status parse(struct train_options *options, int argc, char **argv,
                         const struct train_places *places, bool *help, struct error *error) {
    TRY(train_options_parse(options, argc, argv, help, error));
    if (*help) {
        return STATUS_OK;
    }
    TRY(train_places_know(places, options->device, error));
    return options->gpus == 1 || places->exchange != NULL
               ? STATUS_OK
               : error_set(error, STATUS_INVALID_ARGUMENT,
                           "--gpus %d: this program trains on one GPU; that of lab 15, "
                           "//labs/15_many_gpus:train, on several",
                           options->gpus);
}

/* Rank 0 alone prints. */
static enum status be_silent(const struct ranks *ranks, struct error *error) {
    return ranks_rank(ranks) == 0 || freopen("/dev/null", "w", stdout) != NULL
               ? STATUS_OK
               : error_set(error, STATUS_IO, "cannot open /dev/null");
}

static enum status work(const struct train_options *options, struct ranks *ranks,
                        const struct train_places *places, struct error *error) {
    TRY(be_silent(ranks, error));
    TRY(run(options, ranks, places, error));
    return program_output_end(error);
}

int train_main(int argc, char **argv, const struct train_places *places) {
    static const char program[] = "train";
    struct error error = {0};
    struct train_options options;
    struct ranks *ranks = NULL;
    bool help = false;
    file_enter_working_directory();
    signal(SIGXFSZ, SIG_IGN); /* a file at its size limit is then an error like a full disk */
    enum status status = parse(&options, argc, argv, places, &help, &error);
    if (status != STATUS_OK || help) {
        status = status == STATUS_OK ? program_output_end(&error) : status;
        return program_exit_status(program, &error, status);
    }
    status = ranks_start(&ranks, program, options.gpus, &error);
    if (ranks_launches(ranks)) {
        return ranks_supervise(ranks);
    }
    status = status == STATUS_OK ? work(&options, ranks, places, &error) : status;
    return ranks_end(ranks, program, &error, status, interrupt_seen());
}
