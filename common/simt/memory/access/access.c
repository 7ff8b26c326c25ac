/*
 * Decodes the instructions that reach memory or deal with addresses.
 */
#include "common/simt/memory/access/access.h"

#include "common/simt/memory/access/decode_memory.h"
#include "common/simt/memory/access/late.h"

/* Modifiers without effect here: caching and the scope of ordering. */
static bool is_hint(const char *modifier) {
    static const char *const hints[] = {"weak", "ca",      "cg",    "cs",    "lu",   "cv",
                                        "wb",   "wt",      "nc",    "cta",   "gpu",  "cluster",
                                        "sys",  "unified", "noftz", "entry", "func", NULL};
    return ptx_is_one_of(modifier, hints) || strncmp(modifier, "L1::", 4) == 0 ||
           strncmp(modifier, "L2::", 4) == 0;
}

static bool is_order(const char *modifier) {
    static const char *const orders[] = {"volatile", "relaxed", "acquire", "release",
                                         "acq_rel",  "sc",      "mmio",    NULL};
    return ptx_is_one_of(modifier, orders);
}

static bool is_operation(const char *modifier) {
    static const char *const operations[] = {"add", "min", "max",  "inc", "dec", "and",
                                             "or",  "xor", "exch", "cas", NULL};
    return ptx_is_one_of(modifier, operations);
}

static bool find_space(const char *modifier, enum ptx_space *space) {
    static const struct {
        const char *name;
        enum ptx_space space;
    } spaces[] = {{"global", PTX_GLOBAL},      {"shared", PTX_SHARED},
                  {"shared::cta", PTX_SHARED}, {"shared::cluster", PTX_SHARED},
                  {"local", PTX_LOCAL},        {"const", PTX_CONST},
                  {"param", PTX_PARAM},        {"param::entry", PTX_PARAM}};
    for (size_t n = 0; n < sizeof spaces / sizeof *spaces; n++) {
        if (strcmp(modifier, spaces[n].name) == 0) {
            *space = spaces[n].space;
            return true;
        }
    }
    return false;
}

static uint32_t vector_count(const char *modifier) {
    bool vector = modifier[0] == 'v' && modifier[1] != '\0' && modifier[2] == '\0';
    return vector && strchr("248", modifier[1]) != NULL ? (uint32_t)(modifier[1] - '0') : 0;
}

/* @return false when a modifier is not known. */
static bool read_form(const struct ptx_instruction *source, bool atomic,
                      struct simt_memory_form *form) {
    *form = (struct simt_memory_form){.space = PTX_GENERIC, .count = 1};
    form->type = ptx_modifier_type(source, 0);
    for (size_t n = 0; n < source->modifier_count; n++) {
        const char *modifier = source->modifiers[n];
        uint32_t count = vector_count(modifier);
        if (count > 0) {
            form->count = count;
        } else if (is_order(modifier)) {
            form->strong = true;
        } else if (!is_hint(modifier) && !find_space(modifier, &form->space) &&
                   ptx_type_find(modifier, strlen(modifier)) == PTX_NO_TYPE &&
                   !(atomic && is_operation(modifier))) {
            return false;
        }
    }
    return ptx_type_size(form->type) > 0 && ptx_type_size(form->type) * form->count <= 32;
}

/* Bytes of the register behind an operand; of the type where it is none. */
static uint32_t operand_bytes(const struct simt_decoding *decoding,
                              const struct ptx_operand *operand, enum ptx_type type) {
    size_t size = ptx_type_size(type);
    if (operand->kind == PTX_OPERAND_REGISTER) {
        size = ptx_type_size(decoding->function->registers[operand->index].type);
    }
    return (uint32_t)size;
}

static const struct ptx_operand *element(const struct ptx_operand *operand, uint32_t n) {
    return operand->kind == PTX_OPERAND_VECTOR ? &operand->elements[n] : operand;
}

static uint32_t element_count(const struct ptx_operand *operand) {
    return operand->kind == PTX_OPERAND_VECTOR ? (uint32_t)operand->element_count : 1;
}

/* log2 of the register size of each element, three bits each. */
static uint32_t register_sizes(const struct simt_decoding *decoding,
                               const struct ptx_operand *operand,
                               const struct simt_memory_form *form) {
    uint32_t sizes = 0;
    for (uint32_t n = 0; n < form->count; n++) {
        uint32_t bytes = operand_bytes(decoding, element(operand, n), form->type);
        sizes |= (uint32_t)__builtin_ctz(bytes > 0 ? bytes : 1) << 3 * n;
    }
    return sizes;
}

static bool is_narrow(const struct simt_decoding *decoding, const struct ptx_operand *address) {
    return address->has_register &&
           ptx_type_size(decoding->function->registers[address->index].type) == 4;
}

static void set_details(const struct simt_decoding *decoding, const struct simt_memory_form *form,
                        const struct ptx_operand *address, struct simt_instruction *out) {
    uint32_t size = (uint32_t)ptx_type_size(form->type);
    bool is_signed = form->type >= PTX_S8 && form->type <= PTX_S64;
    out->detail[0] = (size * form->count) << SIMT_BYTES_SHIFT | size << SIMT_ELEMENT_SHIFT |
                     form->count << SIMT_COUNT_SHIFT;
    out->detail[0] |= is_signed ? SIMT_SIGNED : 0;
    out->detail[0] |= is_narrow(decoding, address) ? SIMT_NARROW : 0;
}

static enum simt_class class_of(enum ptx_space space) {
    switch (space) {
    case PTX_SHARED:
        return SIMT_CLASS_SHARED;
    case PTX_LOCAL:
        return SIMT_CLASS_LOCAL;
    case PTX_CONST:
    case PTX_PARAM:
        return SIMT_CLASS_CONSTANT;
    default:
        return SIMT_CLASS_GLOBAL;
    }
}

static bool all_are_4_bytes(const struct simt_memory_form *form, uint32_t sizes) {
    bool same = ptx_type_size(form->type) == 4;
    for (uint32_t n = 0; n < form->count; n++) {
        same = same && (sizes >> 3 * n & 7) == 2;
    }
    return same;
}

static bool decode_load_store(const struct simt_decoding *decoding, bool store,
                              struct simt_instruction *out) {
    const struct ptx_instruction *source = decoding->source;
    struct simt_memory_form form;
    if (source->operand_count < 2 || !read_form(source, false, &form)) {
        return false;
    }
    const struct ptx_operand *data = &source->operands[store ? 1 : 0];
    const struct ptx_operand *address = &source->operands[store ? 0 : 1];
    if (element_count(data) != form.count) {
        return false;
    }
    set_details(decoding, &form, address, out);
    out->detail[1] = register_sizes(decoding, data, &form);
    if (form.strong) {
        out->detail[0] |= SIMT_STRONG | simt_sync_flags(source);
    }
    out->run =
        simt_load_store_handler(out, form.space, store, all_are_4_bytes(&form, out->detail[1]));
    out->op_class = (uint8_t)class_of(form.space);
    return out->run != NULL;
}

/* atom d, [a], b {, c}; red [a], b. A cache policy may follow, which changes nothing. */
static bool decode_atomic(const struct simt_decoding *decoding, bool reduction,
                          struct simt_instruction *out) {
    const struct ptx_instruction *source = decoding->source;
    struct simt_memory_form form;
    size_t address = reduction ? 0 : 1;
    if (source->operand_count < address + 2 || !read_form(source, true, &form) ||
        element_count(&source->operands[address + 1]) != form.count) {
        return false;
    }
    bool cas = ptx_has_modifier(source, "cas");
    if (cas && source->operand_count < address + 3) {
        return false;
    }
    set_details(decoding, &form, &source->operands[address], out);
    out->detail[0] |= simt_sync_flags(source);
    out->detail[1] = reduction ? 0 : register_sizes(decoding, &source->operands[0], &form);
    out->detail[3] = 0;
    for (uint32_t n = 0; n < form.count; n++) {
        const struct ptx_operand *b = element(&source->operands[address + 1], n);
        out->detail[3] |= (uint32_t)(operand_bytes(decoding, b, form.type) > 4) << n;
    }
    if (cas) {
        const struct ptx_operand *c = &source->operands[address + 2];
        out->detail[3] |= (uint32_t)(operand_bytes(decoding, c, form.type) > 4) << 1;
    }
    return simt_decode_atomic(source, &form, out);
}

static bool find_window(const struct ptx_instruction *source, uint64_t *window) {
    enum ptx_space space;
    for (size_t n = 0; n < source->modifier_count; n++) {
        if (find_space(source->modifiers[n], &space)) {
            *window = space == PTX_SHARED  ? SIMT_SHARED_WINDOW
                      : space == PTX_LOCAL ? SIMT_LOCAL_WINDOW
                      : space == PTX_PARAM ? SIMT_PARAMETER_WINDOW
                                           : 0;
            return true;
        }
    }
    return false;
}

/* Adds the window of a space, or takes it away: 64-bit addresses only. */
static void convert_address(struct simt_warp *warp, const struct simt_instruction *in) {
    const uint64_t *from = simt_row(warp, in->src[0])->u64;
    uint64_t *to = simt_row(warp, in->dst[0])->u64;
    for (size_t n = 0; n < SIMT_LANES; n++) {
        uint64_t lane = (uint64_t)(int64_t)(int32_t)warp->lanes[n];
        uint64_t address = from[n] + (uint64_t)in->immediate;
        to[n] = (address & lane) | (to[n] & ~lane);
    }
}

static bool decode_convert_address(const struct simt_decoding *decoding,
                                   struct simt_instruction *out) {
    const struct ptx_instruction *source = decoding->source;
    uint64_t window;
    if (source->operand_count != 2 || ptx_modifier_type(source, 0) != PTX_U64 ||
        !find_window(source, &window)) {
        return false;
    }
    out->immediate = (int64_t)(ptx_has_modifier(source, "to") ? (uint64_t)-window : window);
    out->run = convert_address;
    out->op_class = SIMT_CLASS_MOVE;
    return true;
}

/* Addresses in the shared memory of other blocks of the cluster are in shared::cluster alone. */
static bool is_foreign(const struct simt_warp *warp, const struct simt_instruction *in,
                       uint64_t generic) {
    uint64_t address = generic & (((uint64_t)1 << 56) - 1);
    return generic >> 56 == SIMT_SHARED_WINDOW >> 56 &&
           !ptx_has_modifier(in->source, "shared::cluster") &&
           simt_block_at(warp->block, &address) != warp->block;
}

static void is_in_space(struct simt_warp *warp, const struct simt_instruction *in) {
    const uint64_t *from = simt_row(warp, in->src[0])->u64;
    uint32_t inside = 0;
    for (uint32_t n = 0; n < SIMT_LANES; n++) {
        bool is = from[n] >> 56 == (uint64_t)in->immediate && !is_foreign(warp, in, from[n]);
        inside |= (uint32_t)is << n;
    }
    uint32_t *predicate = &warp->predicates[in->pred_dst[0]];
    *predicate = (*predicate & ~warp->mask) | (inside & warp->mask);
}

/* Constants lie in global memory: a generic address does not distinguish them. */
static bool decode_is_in_space(const struct simt_decoding *decoding, struct simt_instruction *out) {
    const struct ptx_instruction *source = decoding->source;
    uint64_t window;
    bool wide =
        source->operand_count == 2 && operand_bytes(decoding, &source->operands[1], PTX_U64) == 8;
    if (!wide || out->pred_dst[0] < 0 || ptx_has_modifier(source, "const") ||
        !find_window(source, &window)) {
        return false;
    }
    out->immediate = (int64_t)(window >> 56);
    out->run = is_in_space;
    out->op_class = SIMT_CLASS_PREDICATE;
    return true;
}

/* A hint for caches: any value will do. */
static void create_policy(struct simt_warp *warp, const struct simt_instruction *in) {
    uint64_t *to = simt_row(warp, in->dst[0])->u64;
    for (size_t n = 0; n < SIMT_LANES; n++) {
        to[n] &= ~(uint64_t)(int64_t)(int32_t)warp->lanes[n];
    }
}

static void do_nothing(struct simt_warp *warp, const struct simt_instruction *in) {
    (void)warp;
    (void)in;
}

/* What the threads of a cluster have written is there for the async proxy from here on: whose it is
 * and what orders them is not followed. */
static void fence_proxy(struct simt_warp *warp, const struct simt_instruction *in) {
    struct simt_block *block = warp->block;
    const struct simt_cluster *cluster = block->cluster;
    (void)in;
    for (uint32_t n = 0; block->shadow != NULL && n < (cluster != NULL ? cluster->size : 1); n++) {
        struct simt_block *one = cluster != NULL ? cluster->blocks[n] : block;
        one->shadow->proxy_fences++;
    }
}

static void fence(struct simt_warp *warp, const struct simt_instruction *in) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    const struct simt_yield *yield = warp->block->run->yield;
    if (yield != NULL && (in->detail[0] & SIMT_SYSTEM) != 0 && warp->block->shadow != NULL) {
        yield->order(yield->context, SIMT_ORDER_ACQUIRES | SIMT_ORDER_RELEASES, 0, 0);
        simt_late_settle(yield->late);
    }
    simt_sync_release(warp, in->detail[0]);
    simt_sync_acquire(warp, in->detail[0]);
}

static bool decode_fence(const struct ptx_instruction *source, struct simt_instruction *out) {
    out->detail[0] = simt_sync_flags(source);
    out->run = ptx_has_modifier(source, "proxy") && ptx_has_modifier(source, "async") ? fence_proxy
                                                                                      : fence;
    out->op_class = SIMT_CLASS_OTHER;
    return true;
}

bool simt_decode_memory(const struct simt_decoding *decoding, struct simt_instruction *out) {
    static const char *const hints[] = {"prefetch", "prefetchu", "discard", "applypriority", NULL};
    const char *base = decoding->source->base;
    if (strcmp(base, "ld") == 0 || strcmp(base, "ldu") == 0) {
        return decode_load_store(decoding, false, out);
    }
    if (strcmp(base, "st") == 0) {
        return decode_load_store(decoding, true, out);
    }
    if (strcmp(base, "atom") == 0 || strcmp(base, "red") == 0) {
        return decode_atomic(decoding, strcmp(base, "red") == 0, out);
    }
    if (strcmp(base, "cvta") == 0) {
        return decode_convert_address(decoding, out);
    }
    if (strcmp(base, "isspacep") == 0) {
        return decode_is_in_space(decoding, out);
    }
    if (strcmp(base, "membar") == 0 || strcmp(base, "fence") == 0) {
        return decode_fence(decoding->source, out);
    }
    if (strcmp(base, "createpolicy") == 0 && out->dst_count == 1) {
        out->run = create_policy;
        out->op_class = SIMT_CLASS_MOVE;
        return true;
    }
    for (size_t n = 0; hints[n] != NULL; n++) {
        if (strcmp(base, hints[n]) == 0) {
            out->run = do_nothing;
            out->op_class = SIMT_CLASS_OTHER;
            return true;
        }
    }
    return false;
}
