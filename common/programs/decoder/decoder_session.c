#include "common/programs/decoder/decoder_session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/bench/bench.h"
#include "common/checkpoints/gguf/gguf_vocabulary.h"
#include "common/programs/dtype_flag.h"
#include "common/programs/program.h"
#include "common/programs/shipped.h"
#include "common/tokenizers/bpe/tokenizer.h"

/* Tokens of a prompt in one forward call: enough for an efficient matmul, few enough that a CPU
   reacts to Ctrl-C between two calls. */
enum { CPU_BATCH = 64, DEVICE_BATCH = 512 };

enum { SHARED_FLAGS = 6, MOST_THREADS = 1024, MOST_KEPT = 1 << 20 };

/* ---- The command line ---- */

struct decoder_options decoder_options_defaults(void) {
    return (struct decoder_options){.threads = bench_cpu_count(), .gpus = 1};
}

static enum status check_stage(const struct decoder_options *o, const struct decoder_stages *stages,
                               struct error *error) {
    size_t found;
    return o->stage == NULL ? STATUS_OK
                            : stage_flag_find(stages->table, stages->count, sizeof *stages->table,
                                              o->stage, &found, error);
}

/* The checkpoint of the command line, or the project's own. */
static enum status choose_checkpoint(struct decoder_options *o, const struct arguments *arguments,
                                     struct error *error) {
    static const char hint[] =
        "give a file of llama2.c, a GGUF file, or a folder as Hugging Face stores it; "
        "README.md, 'Write a story', says where to get a small one";
    if (arguments->count > 1) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "wants one CHECKPOINT, got %zu: %s",
                         arguments->count, hint);
    }
    if (arguments->count == 0) {
        TRY(shipped_find(SHIPPED_DECODER, "CHECKPOINT", hint, o->shipped, error));
        o->checkpoint = o->shipped;
    } else {
        o->checkpoint = arguments->values[0];
    }
    return STATUS_OK;
}

static enum status check_window(const struct decoder_options *o, struct error *error) {
    if (o->sinks < 0 || o->window < 0 || o->sinks > MOST_KEPT || o->window > MOST_KEPT) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--sinks %d, --window %d: must be from 0 to %d", o->sinks, o->window,
                         MOST_KEPT);
    }
    return o->sinks == 0 || o->window > 0
               ? STATUS_OK
               : error_set(error, STATUS_INVALID_ARGUMENT,
                           "--sinks %d without a window: give --window N, the last tokens that are "
                           "kept beside them",
                           o->sinks);
}

static enum status check_gpus(const struct decoder_options *o, const struct decoder_stages *stages,
                              struct error *error) {
    if (o->gpus < 1 || o->gpus > RANKS_MOST) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--gpus %d: from 1 to %d", o->gpus,
                         RANKS_MOST);
    }
    if (o->gpus > 1 && stages->cut == NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--gpus %d: this program runs on one GPU; that of lab 15, "
                         "//labs/15_many_gpus:generate, on several",
                         o->gpus);
    }
    return o->gpus == 1 || o->window == 0
               ? STATUS_OK
               : error_set(error, STATUS_INVALID_ARGUMENT,
                           "--gpus %d and --window: the cut decoder keeps the whole text", o->gpus);
}

static enum status check(struct decoder_options *o, const struct decoder_stages *stages,
                         const struct arguments *arguments, struct error *error) {
    TRY(choose_checkpoint(o, arguments, error));
    if (o->threads < 1) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--threads %d: must be at least 1",
                         o->threads);
    }
    if (o->threads > MOST_THREADS) {
        return error_set(error, STATUS_INVALID_ARGUMENT, "--threads %d: must be at most %d",
                         o->threads, MOST_THREADS);
    }
    if (o->dtype != NULL) {
        enum nn_dtype dtype;
        TRY(dtype_flag_parse(o->dtype, &dtype, error));
    }
    TRY(check_window(o, error));
    TRY(check_gpus(o, stages, error));
    return check_stage(o, stages, error);
}

static enum status parse(const struct flags *flags, int argc, char **argv,
                         struct decoder_options *o, const struct decoder_stages *stages,
                         struct arguments *arguments, struct error *error) {
    TRY(flags_read(flags, argc, argv, arguments, error));
    return arguments->help ? STATUS_OK : check(o, stages, arguments, error);
}

/* Reads the command line, checks everything that can be checked without a file, and finds the
   project's own checkpoint if none is named. *help: --help was printed. */
static enum status parse_command(const struct decoder_command *c,
                                 const struct decoder_stages *stages, int argc, char **argv,
                                 bool *help, struct error *error) {
    struct decoder_options *o = c->options;
    const struct flag shared[SHARED_FLAGS] = {
        {"tokenizer", 'z', FLAG_STRING, &o->tokenizer, "FILE",
         "a file of llama2.c or a tokenizer.json; default: tokenizer.bin, or the folder's own"},
        {"threads", 0, FLAG_INT, &o->threads, "N", "most CPU threads"},
        {"dtype", 0, FLAG_STRING, &o->dtype, "TYPE",
         "fp32, fp16 or bf16: type of the matrices on the engine; default: as stored, if the "
         "stage supports it"},
        {"stage", 0, FLAG_STRING, &o->stage, "NAME",
         "stage of the course, by name or number; default: the last one if there is a GPU, else "
         "the last one on the CPU"},
        {"window", 'w', FLAG_INT, &o->window, "N",
         "a text without end: the model sees its last N tokens and --sinks first ones; 0: off"},
        {"sinks", 0, FLAG_INT, &o->sinks, "N", "first tokens that --window keeps; 4 is usual"},
    };
    struct flag table[LLAMA2_MOST_FLAGS + SHARED_FLAGS];
    memcpy(table, c->own, c->own_count * sizeof *table);
    memcpy(table + c->own_count, shared, sizeof shared);
    const struct flags flags = {
        .program = c->program,
        .positional = "[CHECKPOINT]",
        .summary = c->summary,
        .table = table,
        .count = c->own_count + SHARED_FLAGS,
        .epilogue = c->epilogue,
    };
    struct arguments arguments;
    enum status status = parse(&flags, argc, argv, o, stages, &arguments, error);
    *help = arguments.help;
    free(arguments.values);
    return status;
}

/* Rank 0 alone prints. */
static enum status work_as_rank(struct ranks *ranks, const struct decoder_stages *stages,
                                decoder_work *work, void *options, struct error *error) {
    if (ranks_rank(ranks) > 0 && freopen("/dev/null", "w", stdout) == NULL) {
        return error_set(error, STATUS_IO, "cannot open /dev/null");
    }
    return work(options, stages, error);
}

int decoder_command_main(const struct decoder_command *c, const struct decoder_stages *stages,
                         int argc, char **argv, decoder_work *work, void *options) {
    struct error error = {0};
    struct ranks **ranks = &c->options->ranks;
    bool help = false;
    file_enter_working_directory();
    enum status status = parse_command(c, stages, argc, argv, &help, &error);
    if (status != STATUS_OK || help) {
        return program_exit_status(c->program, &error, status);
    }
    status = ranks_start(ranks, c->program, c->options->gpus, &error);
    if (ranks_launches(*ranks)) {
        return ranks_supervise(*ranks);
    }
    status = status == STATUS_OK ? work_as_rank(*ranks, stages, work, options, &error) : status;
    return ranks_end(*ranks, c->program, &error, status, interrupt_seen());
}

/* ---- Files and engine ---- */

/* Opens the tokenizer that is named, else the folder's own, else tokenizer.bin. */
static enum status open_tokenizer(struct decoder_session *s, const struct decoder_options *o,
                                  struct error *error) {
    bool guessed = o->tokenizer == NULL && !s->folder;
    const char *path = o->tokenizer != NULL ? o->tokenizer
                       : s->folder          ? o->checkpoint
                                            : "tokenizer.bin";
    struct error cause = {0};
    size_t V = s->is_gpt_neox ? s->gpt_neox.config.V : s->checkpoint.config.V;
    enum status status = tokenizer_open(&s->tokenizer, path, V, &cause);
    return status == STATUS_OK
               ? STATUS_OK
               : error_set(error, status, "%s%s", error_text(&cause, status),
                           guessed ? "; give the checkpoint's own with --tokenizer FILE" : "");
}

/* The tokenizer that is named, else the one inside the GGUF file. */
static enum status open_gguf_tokenizer(struct decoder_session *s, const struct decoder_options *o,
                                       struct error *error) {
    int32_t eos;
    if (o->tokenizer != NULL) {
        return open_tokenizer(s, o, error);
    }
    enum status status = gguf_vocabulary_read(&s->checkpoint.gguf, s->checkpoint.config.V,
                                              &s->tokenizer, &eos, error);
    llama2_ends_add(&s->ends, eos);
    return status == STATUS_OK ? STATUS_OK : error_prefix(error, status, o->checkpoint);
}

static enum status open_files(struct decoder_session *s, const struct decoder_options *o,
                              struct error *error) {
    s->is_gpt_neox = gpt_neox_checkpoint_is(o->checkpoint);
    TRY(s->is_gpt_neox ? gpt_neox_checkpoint_open(&s->gpt_neox, o->checkpoint, error)
                       : llama2_checkpoint_open(&s->checkpoint, o->checkpoint, error));
    bool is_gguf = s->checkpoint.gguf.view.data != NULL;
    s->folder = s->checkpoint.llama2c.weights.layers == NULL && !is_gguf;
    TRY(is_gguf ? open_gguf_tokenizer(s, o, error) : open_tokenizer(s, o, error));
    TRY(s->folder ? llama2_ends_open(&s->ends, o->checkpoint, error) : STATUS_OK);
    llama2_ends_add(&s->ends, bpe_eos(s->tokenizer));
    return STATUS_OK;
}

/* The last stage on the CPU; NULL: there is none. */
static const struct decoder_stage *last_on_cpu(const struct decoder_stages *stages) {
    for (size_t i = stages->count; i-- > 0;) {
        if (!stages->table[i].on_device) {
            return &stages->table[i];
        }
    }
    return NULL;
}

/* Whether there is a GPU; simt does not count. */
static bool real_gpu(const struct decoder_stages *stages) {
    struct program_device device;
    return stages->open_device == NULL ||
           (stages->open_device(&device, NULL) == STATUS_OK && !device.modelled);
}

static const struct decoder_stage *choose_stage(const struct decoder_options *o,
                                                const struct decoder_stages *stages,
                                                const struct llama2_config *config) {
    const struct decoder_stage *last = &stages->table[stages->count - 1];
    if (o->stage != NULL || o->ranks != NULL) {
        return o->ranks != NULL ? last : decoder_stage_find(stages, o->stage);
    }
    bool both = last->on_device && last_on_cpu(stages) != NULL;
    if (both && !real_gpu(stages)) {
        return last_on_cpu(stages);
    }
    bool relative = stages->relatives != NULL && llama2_extra(config) != NULL;
    return relative ? decoder_stage_find(stages, stages->relatives) : last;
}

static enum status create_engine(struct decoder_session *s, const struct decoder_options *o,
                                 const struct decoder_cut *cut, struct error *error) {
    TRY(s->ranks != NULL ? cut->create(cut->context, &s->engine, error)
                         : s->stage->create(&s->engine, o->threads, error));
    if (o->profile) {
        TRY(engine_profile_create(&s->timed, &s->engine, &s->profile));
        s->profile.now = s->now;
    }
    return STATUS_OK;
}

static enum status start_engine(struct decoder_session *s, const struct decoder_options *o,
                                const struct decoder_stages *stages, struct error *error) {
    if (s->ranks != NULL) {
        ranks_phase(s->ranks, "choosing a GPU");
        TRY(stages->cut->choose(stages->cut->context, s->ranks, error));
        ranks_phase(s->ranks, "loading");
    }
    s->stage = choose_stage(o, stages, &s->checkpoint.config);
    s->now = bench_now;
    snprintf(s->device.name, sizeof s->device.name, "%s",
             s->stage->on_device ? "a GPU" : "the CPU");
    if (s->stage->on_device && stages->open_device != NULL) {
        TRY(stages->open_device(&s->device, error));
        s->now = stages->device_now;
    }
    struct error cause = {0};
    enum status status = create_engine(s, o, stages->cut, &cause);
    return status == STATUS_OK ? STATUS_OK
                               : error_set(error, status, "cannot start the engine: %s",
                                           error_text(&cause, status));
}

/* ---- The model ---- */

/* The type of the stored matrices visited so far. */
struct matrices {
    bool any;
    enum nn_dtype dtype;
};

static enum status compare_stored(struct matrices *matrices,
                                  const struct decoder_stored_tensor *stored) {
    if (matrices->any && stored->dtype != matrices->dtype) {
        return STATUS_MISMATCH;
    }
    matrices->any = true;
    matrices->dtype = stored->dtype;
    return STATUS_OK;
}

static enum status compare_dtype(void *context, const struct decoder_weight *tensor) {
    return tensor->rank == 1 ? STATUS_OK : compare_stored(context, tensor->stored);
}

/* The type of all matrices; fp32, which can hold all types, if they differ. */
static enum nn_dtype stored_dtype(struct llama2_checkpoint *checkpoint) {
    struct matrices matrices = {.any = false};
    enum status status = llama2_tensors_visit(&checkpoint->config, checkpoint->shared_classifier,
                                              &checkpoint->weights, NULL, compare_dtype, &matrices);
    return status == STATUS_OK ? matrices.dtype : NN_F32;
}

static enum status compare_gpt_neox_dtype(void *context, const struct decoder_weight *tensor) {
    return tensor->rank == 1 ? STATUS_OK : compare_stored(context, tensor->stored);
}

static enum nn_dtype gpt_neox_dtype(struct gpt_neox_checkpoint *checkpoint) {
    struct matrices matrices = {.any = false};
    enum status status =
        gpt_neox_tensors_visit(&checkpoint->config, checkpoint->shared_classifier,
                               &checkpoint->weights, NULL, compare_gpt_neox_dtype, &matrices);
    return status == STATUS_OK ? matrices.dtype : NN_F32;
}

/* As make_model() does it for a Llama2. */
static enum status make_gpt_neox(struct decoder_session *s, const struct engine *engine,
                                 const struct decoder_options *o, struct error *error) {
    struct gpt_neox_config config = s->gpt_neox.config;
    struct error cause = {0};
    config.T = s->context;
    config.sinks = s->endless ? s->sinks : 0;
    config.recent = s->endless ? s->context - s->sinks : 0;
    s->dtype = gpt_neox_dtype(&s->gpt_neox);
    if (o->dtype != NULL) {
        TRY(dtype_flag_parse(o->dtype, &s->dtype, error));
    }
    enum status status = gpt_neox_create_stored(&s->model.gpt_neox, &config, &s->gpt_neox.weights,
                                                s->dtype, engine, s->batch, &cause);
    if (status != STATUS_UNSUPPORTED) {
        return status == STATUS_OK ? STATUS_OK
                                   : error_set(error, status, "%s", error_text(&cause, status));
    }
    if (o->dtype != NULL && s->dtype != NN_F32) {
        return error_set(error, STATUS_UNSUPPORTED,
                         "--dtype %s: stage %s computes a GPT-NeoX in fp32 only", o->dtype,
                         s->stage->name);
    }
    s->dtype = NN_F32;
    TRY(gpt_neox_checkpoint_convert(&s->gpt_neox, 0, &s->gpt_neox_fp32, error));
    return gpt_neox_create(&s->model.gpt_neox, &config, &s->gpt_neox_fp32.weights, engine, s->batch,
                           error);
}

static struct llama2_config config_of(const struct decoder_session *s) {
    struct llama2_config config = s->checkpoint.config;
    config.T = s->context;
    config.sinks = s->endless ? s->sinks : 0;
    config.recent = s->endless ? s->context - s->sinks : 0;
    return config;
}

static enum status make_fp32(struct decoder_session *s, const struct engine *engine,
                             struct error *error) {
    s->dtype = NN_F32;
    TRY(llama2_checkpoint_convert(&s->checkpoint, 0, &s->fp32, error));
    const struct llama2_config config = config_of(s);
    return llama2_create(&s->model.llama2, &config, &s->fp32.weights, engine, s->batch, error);
}

/* Makes the model with the engine's decoder. Without a decoder, or if it does not support this
   model, the model runs operator by operator in fp32. */
static enum status make_model(struct decoder_session *s, const struct decoder_options *o,
                              struct error *error) {
    const struct engine *engine = o->profile ? &s->timed : &s->engine;
    if (s->is_gpt_neox) {
        return make_gpt_neox(s, engine, o, error);
    }
    s->dtype = stored_dtype(&s->checkpoint);
    if (o->dtype != NULL) {
        TRY(dtype_flag_parse(o->dtype, &s->dtype, error));
    }
    if (engine->decoder_create != NULL) {
        struct error cause = {0};
        const struct llama2_config config = config_of(s);
        enum status status = llama2_create_stored(&s->model.llama2, &config, &s->checkpoint.weights,
                                                  s->dtype, engine, s->batch, &cause);
        if (status != STATUS_UNSUPPORTED) {
            return status == STATUS_OK ? STATUS_OK
                                       : error_set(error, status, "%s", error_text(&cause, status));
        }
    }
    if (o->dtype != NULL && s->dtype != NN_F32) {
        const char *extra = llama2_extra(&s->checkpoint.config);
        return error_set(error, STATUS_UNSUPPORTED,
                         "--dtype %s: stage %s computes %s%s in fp32 only", o->dtype,
                         s->stage->name,
                         extra != NULL                    ? "models with "
                         : engine->decoder_create != NULL ? "this model"
                                                          : "Llama2",
                         extra != NULL ? extra : "");
    }
    return make_fp32(s, engine, error);
}

/* ---- Several ranks ---- */

/* A checksum of names, shapes, types, and of pieces of the bytes, spread evenly: a rank reads no
   more of the other ranks' parts. */
static enum status add_tensor(void *context, const struct decoder_weight *tensor) {
    enum { PIECES = 16, PIECE_BYTES = 256 };
    uint64_t *sum = context;
    const struct decoder_stored_tensor *t = tensor->stored;
    size_t bytes = t->rows * t->columns * nn_dtype_bytes(t->dtype);
    const uint64_t shape[] = {tensor->rank, tensor->shape[0], tensor->shape[1], t->dtype, bytes};
    *sum = *sum * 31 + checksum_bytes(tensor->name, strlen(tensor->name));
    *sum = *sum * 31 + checksum_bytes(shape, sizeof shape);
    for (size_t i = 0; i < PIECES; i++) {
        size_t at = bytes / PIECES * i, left = bytes - at;
        *sum = *sum * 31 +
               checksum_bytes((const char *)t->data + at, left < PIECE_BYTES ? left : PIECE_BYTES);
    }
    return STATUS_OK;
}

static enum status compare_checkpoints(struct decoder_session *s, struct error *error) {
    const struct llama2_config *c = &s->checkpoint.config;
    const char *extra = s->is_gpt_neox ? "what a GPT-NeoX has" : llama2_extra(c);
    uint64_t sum = 0;
    char text[160];
    if (s->ranks == NULL) {
        return STATUS_OK;
    }
    if (extra != NULL) {
        return error_set(error, STATUS_INVALID_ARGUMENT,
                         "--gpus: only a plain Llama2 can be cut; this model has %s", extra);
    }
    TRY(llama2_tensors_visit(c, s->checkpoint.shared_classifier, &s->checkpoint.weights, NULL,
                             add_tensor, &sum));
    snprintf(text, sizeof text,
             "%zu layers of %zu channels, %zu and %zu heads, theta %g, checksum %016" PRIx64, c->L,
             c->C, c->NH, c->KVH, (double)c->rope_theta, sum);
    return ranks_compare(s->ranks, "the checkpoint", text, error);
}

/* Whether the model can see sinks and a window. */
static enum status check_endless(const struct decoder_session *s, struct error *error) {
    return s->is_gpt_neox || s->checkpoint.config.window == 0
               ? STATUS_OK
               : error_set(error, STATUS_UNSUPPORTED,
                           "--window: the model has a sliding window of its own, of %zu tokens",
                           s->checkpoint.config.window);
}

static enum status open_all(struct decoder_session *s, const struct decoder_options *o,
                            const struct decoder_stages *stages, size_t most_batch,
                            struct error *error) {
    s->ranks = o->ranks;
    ranks_phase(s->ranks, "loading");
    TRY(open_files(s, o, error));
    TRY(compare_checkpoints(s, error));
    TRY(start_engine(s, o, stages, error));
    size_t longest = decoder_session_longest(s);
    longest = o->positions > 0 && o->positions < longest ? o->positions : longest;
    s->context = longest;
    s->endless = o->window > 0;
    if (s->endless) {
        TRY(check_endless(s, error));
        s->sinks = (size_t)o->sinks;
        s->context = s->sinks + (size_t)o->window;
    }
    s->batch = most_batch > 0 ? most_batch : s->stage->on_device ? DEVICE_BATCH : CPU_BATCH;
    s->batch = s->batch < s->context ? s->batch : s->context;
    TRY(make_model(s, o, error));
    ranks_phase(s->ranks, "generating");
    return STATUS_OK;
}

size_t decoder_session_longest(const struct decoder_session *s) {
    return s->is_gpt_neox ? s->gpt_neox.config.T : s->checkpoint.config.T;
}

enum status decoder_session_open(struct decoder_session *session,
                                 const struct decoder_options *options,
                                 const struct decoder_stages *stages, size_t most_batch,
                                 struct error *error) {
    *session = (struct decoder_session){0};
    enum status status = open_all(session, options, stages, most_batch, error);
    if (status != STATUS_OK && options->ranks == NULL) { /* closing is collective */
        decoder_session_close(session);
    }
    return status;
}

void decoder_session_close(struct decoder_session *session) {
    language_model_free(&session->model);
    engine_destroy(&session->timed);
    engine_destroy(&session->engine);
    bpe_free(session->tokenizer);
    llama2_fp32_free(&session->fp32);
    llama2_checkpoint_close(&session->checkpoint);
    gpt_neox_fp32_free(&session->gpt_neox_fp32);
    gpt_neox_checkpoint_close(&session->gpt_neox);
    *session = (struct decoder_session){0};
}

const char *decoder_session_where(const struct decoder_session *s, char *text, size_t size) {
    return program_where(s->stage->name, s->dtype, &s->device, text, size);
}

const char *decoder_session_modelled(const struct decoder_session *s) {
    return s->device.modelled ? " modelled" : "";
}
