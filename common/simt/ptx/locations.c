/* Places in the source: .file and .loc. */
#include <string.h>

#include "common/simt/ptx/parser.h"

/* .file N "name" [, time, size] */
bool ptx_parse_file(struct ptx_parser *parser) {
    uint64_t number, ignored;
    bool more;
    PTX_TRY(ptx_read_integer(parser, PTX_MAX_FILE, &number));
    if (parser->token.kind != PTX_TOKEN_STRING) {
        return ptx_fail_expected(parser, "the name of a file in quotes");
    }
    char *name = ptx_names_keep(&parser->names, parser->token.text, parser->token.length);
    while (parser->files.count <= number) {
        if (ptx_list_add(&parser->files) == NULL) {
            return ptx_fail_memory(parser);
        }
    }
    if (name == NULL) {
        return ptx_fail_memory(parser);
    }
    *(char **)ptx_list_at(&parser->files, number) = name;
    PTX_TRY(ptx_advance(parser) && ptx_skip_mark(parser, ',', &more));
    while (more) {
        PTX_TRY(ptx_read_integer(parser, UINT64_MAX, &ignored) &&
                ptx_skip_mark(parser, ',', &more));
    }
    return true;
}

struct place {
    uint64_t file, line, column;
};

static bool read_place(struct ptx_parser *parser, struct place *place) {
    return ptx_read_integer(parser, UINT32_MAX, &place->file) &&
           ptx_read_integer(parser, UINT32_MAX, &place->line) &&
           ptx_read_integer(parser, UINT32_MAX, &place->column);
}

/* Keys of a place: the function's number keeps the places of one function together. */
static uint64_t first_key(const struct place *place) {
    return place->file << 32 | place->line;
}

static uint64_t second_key(const struct ptx_parser *parser, const struct place *place) {
    return (uint64_t)parser->body.number << 32 | place->column;
}

/* Makes the location; a later .loc that was inlined here finds it. */
static const struct ptx_location *add_location(struct ptx_parser *parser, const struct place *place,
                                               const struct ptx_location *caller) {
    struct ptx_location *location = ptx_memory_take(parser->memory, 1, sizeof *location);
    const struct ptx_location **item = location != NULL ? ptx_list_add(&parser->locations) : NULL;
    if (item == NULL) {
        return NULL;
    }
    *location = (struct ptx_location){(uint32_t)place->file, (uint32_t)place->line, caller};
    *item = location;
    uint32_t number = (uint32_t)(parser->locations.count - 1);
    uint64_t a = first_key(place), b = second_key(parser, place);
    uint32_t *known = ptx_map_find(&parser->location_map, a, b);
    if (known != NULL) {
        *known = number;
        return location;
    }
    return ptx_map_add(&parser->location_map, a, b, number) ? location : NULL;
}

static const struct ptx_location *find_location(struct ptx_parser *parser,
                                                const struct place *place) {
    const uint32_t *known =
        ptx_map_find(&parser->location_map, first_key(place), second_key(parser, place));
    return known != NULL ? *(const struct ptx_location **)ptx_list_at(&parser->locations, *known)
                         : add_location(parser, place, NULL);
}

/* function_name LABEL [+ N], inlined_at FILE LINE COLUMN */
static bool parse_inlined(struct ptx_parser *parser, const struct ptx_location **caller) {
    struct place place;
    char *function;
    int64_t offset;
    if (!ptx_token_is(&parser->token, "function_name")) {
        return ptx_fail_expected(parser, "'function_name'");
    }
    PTX_TRY(ptx_advance(parser) && ptx_read_name(parser, &function) &&
            ptx_read_offset(parser, &offset) && ptx_expect_mark(parser, ','));
    if (!ptx_token_is(&parser->token, "inlined_at")) {
        return ptx_fail_expected(parser, "'inlined_at'");
    }
    PTX_TRY(ptx_advance(parser) && read_place(parser, &place));
    *caller = find_location(parser, &place);
    return *caller != NULL || ptx_fail_memory(parser);
}

/* .loc FILE LINE COLUMN [, function_name ...] */
bool ptx_parse_loc(struct ptx_parser *parser) {
    struct place place;
    bool inlined;
    const struct ptx_location *caller = NULL;
    PTX_TRY(read_place(parser, &place) && ptx_skip_mark(parser, ',', &inlined));
    if (inlined && !parse_inlined(parser, &caller)) {
        return false;
    }
    parser->body.location = add_location(parser, &place, caller);
    return parser->body.location != NULL || ptx_fail_memory(parser);
}

/* Headers of the toolkit: a learner did not write them. */
static bool is_of_toolkit(const char *file) {
    return strncmp(file, "/usr/", 5) == 0 || strstr(file, "/targets/") != NULL;
}

static const char *file_name(const struct ptx_module *module, uint32_t file) {
    return file < module->file_count ? module->files[file] : NULL;
}

/* Bazel compiles in a folder of its own: what follows it is the path in the workspace. */
static const char *without_sandbox(const char *file) {
    static const char mark[] = "/execroot/";
    const char *at = file != NULL ? strstr(file, mark) : NULL;
    const char *workspace = at != NULL ? strchr(at + sizeof mark - 1, '/') : NULL;
    return workspace != NULL ? workspace + 1 : file;
}

/* Adds a place, unless it is in the toolkit or not known. */
static size_t add_place(const struct ptx_module *module, uint32_t file, uint32_t line,
                        struct ptx_place *places, size_t count) {
    const char *name = line != 0 ? file_name(module, file) : NULL;
    if (name == NULL || is_of_toolkit(name)) {
        return count;
    }
    places[count] = (struct ptx_place){without_sandbox(name), line};
    return count + 1;
}

/* All lines are in the toolkit: the outermost. */
static size_t add_last(const struct ptx_module *module, const struct ptx_instruction *instruction,
                       struct ptx_place *place) {
    const struct ptx_location *at = instruction->location;
    uint32_t file = instruction->file, line = instruction->line;
    for (; at != NULL && at->caller != NULL; at = at->caller) {
        file = at->caller->file;
        line = at->caller->line;
    }
    const char *name = line != 0 ? file_name(module, file) : NULL;
    *place = (struct ptx_place){without_sandbox(name), line};
    return name != NULL ? 1 : 0;
}

size_t ptx_source_lines(const struct ptx_module *module, const struct ptx_instruction *instruction,
                        struct ptx_place *places, size_t most) {
    const struct ptx_location *at = instruction->location;
    size_t count = add_place(module, instruction->file, instruction->line, places, 0);
    for (at = at != NULL ? at->caller : NULL; at != NULL && count < most; at = at->caller) {
        count = add_place(module, at->file, at->line, places, count);
    }
    return count > 0 ? count : add_last(module, instruction, places);
}

const char *ptx_source_line(const struct ptx_module *module,
                            const struct ptx_instruction *instruction, uint32_t *line) {
    struct ptx_place place = {0};
    ptx_source_lines(module, instruction, &place, 1);
    *line = place.line;
    return place.file;
}
