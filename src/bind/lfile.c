/* Asking the file system may block, so a lookup is a job on the lane for files, with its path
 * copied and its folder counted: the request may be cancelled and the VM closed meanwhile. */
#include "bind/lfile.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>

#include "base/err.h"
#include "bind/env.h"
#include "bind/lanswer.h"
#include "bind/lanswer_file.h"
#include "bind/lcall.h"
#include "bind/lerror.h"
#include "bind/lfield.h"
#include "bind/lhead.h"
#include "bind/ljob.h"
#include "bind/lpattern.h"
#include "bind/lrecord.h"
#include "bind/lsite.h"
#include "bind/lstr.h"
#include "ev/loop.h"
#include "ev/pool.h"
#include "http/listing.h"
#include "http/url.h"
#include "vm/task.h"

static const char METATABLE[] = "srv.Folder";

enum { INDEX_BYTES = 64 };

static const char *const OUTCOMES[] = {
    [FILES_FOUND] = "found",      [FILES_MISSING] = "missing",     [FILES_BAD_PATH] = "bad_path",
    [FILES_IS_FOLDER] = "folder", [FILES_EXHAUSTED] = "exhausted",
};

/* --- folders ------------------------------------------------------------------------------------------ */

/* Held by its userdata and by the lookups under way, which may outlive that. */
struct folder {
    struct files_folder *files;
    atomic_uint          holders;
};

static void let_go(struct folder *folder)
{
    if (atomic_fetch_sub(&folder->holders, 1) != 1)
        return;
    files_close(folder->files);
    free(folder);
}

/* folder(path) -> folder | nil, err */
static int open_folder(lua_State *L)
{
    const char     *path   = luaL_checkstring(L, 1);
    struct folder **box    = lua_newuserdata(L, sizeof(struct folder *));
    struct folder  *folder = calloc(1, sizeof(*folder));
    struct err      err    = { 0 };

    *box = NULL;
    if (!folder)
        return luaL_error(L, "not enough memory");
    if (files_open(&folder->files, path, &err) < 0) {
        free(folder);
        return lerror_nil(L, "fs", "%s", err.text);
    }
    atomic_init(&folder->holders, 1);
    *box = folder;
    luaL_getmetatable(L, METATABLE);
    lua_setmetatable(L, -2);
    return 1;
}

static int collect(lua_State *L)
{
    struct folder **box = luaL_checkudata(L, 1, METATABLE);

    if (*box)
        let_go(*box);
    *box = NULL;
    return 0;
}

/* --- lookups ------------------------------------------------------------------------------------------- */

struct lookup {
    struct job         job;
    struct folder     *folder;
    struct task       *waiter; /* NULL: it was cancelled */
    struct files_rules rules;
    char               index[INDEX_BYTES];
    enum files_outcome outcome;
    struct files_file  file;
    size_t             path_len;
    char               path[];
};

/* Any thread. A descriptor that nobody took is closed. */
static void free_lookup(struct lookup *lookup)
{
    if (lookup->outcome == FILES_FOUND && lookup->file.fd >= 0)
        close(lookup->file.fd);
    let_go(lookup->folder);
    free(lookup);
}

static void run(struct job *job)
{
    struct lookup *lookup = container_of(job, struct lookup, job);

    lookup->outcome = files_find(lookup->folder->files, str_make(lookup->path, lookup->path_len),
                                 &lookup->rules, &lookup->file);
}

static void drop(struct job *job)
{
    free_lookup(container_of(job, struct lookup, job));
}

static void done(struct job *job)
{
    struct lookup *lookup = container_of(job, struct lookup, job);

    if (lookup->waiter)
        task_wake(lookup->waiter);
    else
        free_lookup(lookup);
}

/* Whoever has the last word frees it: the wait, or the job that still runs. */
static void disarm(void *op)
{
    struct lookup *lookup = op;

    lookup->waiter = NULL;
    if (job_cancel(&lookup->job) || atomic_load(&lookup->job.state) == JOB_IDLE)
        free_lookup(lookup);
}

/* --- recording what was found ------------------------------------------------------------------------------ */

/* `public` would allow what RFC 9111, 3.5, forbids shared caches by default: to keep an answer to who had to say who
 * it is. */
static void read_rules(lua_State *L, const struct request *request, struct file_answer_rules *rules)
{
    *rules = (struct file_answer_rules){
        .is_private   = lfield_bool(L, 4, "private") || request_field(request, FIELD_AUTHORIZATION),
        .immutable    = lfield_bool(L, 4, "immutable"),
        .etag         = lfield_bool(L, 4, "etag"),
        .varies       = lfield_bool(L, 4, "precompressed"),
        .max_age_s    = (uint64_t)lfield_number(L, 4, "max_age"),
        .content_type = lfield_str(L, 4, "type"),
    };
}

/* Fields that the app has set stay as they are; but what the answer varies by is all of it. */
static void take_field(lua_State *L, struct lcall *call, const struct field *field)
{
    struct err err;
    int        rc = 0;

    if (str_is(field->name, STR("Vary")))
        rc = lhead_add_vary(call, field->value, &err);
    else if (!lhead_get(call, field->name).at)
        rc = lhead_add(call, field->name, field->value, &err);
    if (rc < 0)
        luaL_error(L, "%s", err.text);
}

static void record(lua_State *L, struct lcall *call, struct lookup *lookup)
{
    struct file_answer_rules rules;
    struct lfile            *found = arena_alloc(&call->ex->arena, sizeof(*found));

    read_rules(L, &call->ex->request, &rules);
    lanswer_close_file(call);
    found->file = lookup->file;
    file_answer_describe(&call->ex->arena, &found->file, &rules, &found->plan);
    for (unsigned i = 0; i < found->plan.field_count; i++)
        take_field(L, call, &found->plan.fields[i]);
    if (!call->type.at) /* the rules' type is Lua's, and may go with its table */
        call->type = arena_copy(&call->ex->arena, found->plan.content_type);
    found->plan.field_count = 0;
    lookup->file.fd         = -1;
    call->file              = found;
    call->recorded          = RECORDED_FILE;
    lrecord_note_where(call, L);
}

static int push_found(lua_State *L, void *op)
{
    struct lookup *lookup        = op;
    struct lcall  *call          = lcall_check(L, 1);
    bool           is_only_asked = lua_toboolean(L, 5);

    if (lookup->outcome == FILES_FOUND && !is_only_asked)
        record(L, call, lookup);
    lua_pushstring(L, OUTCOMES[lookup->outcome]);
    free_lookup(lookup);
    return 1;
}

static struct lookup *new_lookup(lua_State *L, struct folder *folder, struct str path)
{
    struct lookup *lookup = calloc(1, sizeof(*lookup) + path.len + 1);
    size_t         len    = 0;
    const char    *index;

    if (!lookup)
        luaL_error(L, "not enough memory");
    lookup->job      = (struct job){ .run = run, .done = done, .drop = drop };
    lookup->folder   = folder;
    lookup->outcome  = FILES_MISSING;
    lookup->file.fd  = -1;
    lookup->path_len = path.len;
    memcpy(lookup->path, path.at, path.len);
    atomic_fetch_add(&folder->holders, 1);
    list_init(&lookup->job.link);
    lua_getfield(L, 4, "index");
    index = lua_tolstring(L, -1, &len);
    if (index && len < sizeof(lookup->index)) {
        memcpy(lookup->index, index, len);
        lookup->rules.index = lookup->index;
    }
    lua_pop(L, 1);
    return lookup;
}

/* find_file(res, folder, path, options, [only_ask]) -> "found" (and recorded) | "missing" |
 * "bad_path" | "folder" | "exhausted" */
static int find_file(lua_State *L)
{
    struct lcall   *call = lcall_check(L, 1);
    struct folder **box  = luaL_checkudata(L, 2, METATABLE);
    struct env     *env  = env_of(L);
    struct task    *task = task_current(L);
    struct lookup  *lookup;
    struct str      path;

    path = lstr_check(L, 3);
    luaL_checktype(L, 4, LUA_TTABLE);
    lua_settop(L, 5);
    if (task_is_cancelled(task))
        return task_stop(L);
    lookup                 = new_lookup(L, *box, path);
    lookup->rules.dotfiles = lfield_bool(L, 4, "dotfiles");
    if (lfield_bool(L, 4, "precompressed"))
        lookup->rules.codings = files_codings(&call->ex->request);
    lookup->waiter = task;
    if (lane_submit(env->lane_file, &lookup->job, loop_inbox(env->loop)) != 0) {
        free_lookup(lookup);
        lua_pushliteral(L, "exhausted");
        return 1;
    }
    return task_wait(L, lookup, disarm, push_found);
}

/* --- listings ------------------------------------------------------------------------------------------------ */

struct list_job {
    struct ljob        ljob;
    struct folder     *folder;
    bool               shows_dotfiles;
    enum files_outcome outcome;
    struct listing     listing;
    size_t             path_len;
    char               path[];
};

static void list(struct ljob *ljob)
{
    struct list_job *job = container_of(ljob, struct list_job, ljob);

    job->outcome = listing_read(job->folder->files, str_make(job->path, job->path_len),
                                job->shows_dotfiles, &job->listing);
}

static void free_list(struct ljob *ljob)
{
    struct list_job *job = container_of(ljob, struct list_job, ljob);

    if (job->outcome == FILES_FOUND)
        listing_fini(&job->listing);
    let_go(job->folder);
    free(job);
}

static void push_entry(lua_State *L, const struct listing *listing,
                       const struct listing_entry *entry)
{
    lua_createtable(L, 0, 4);
    lua_pushstring(L, listing_name(listing, entry));
    lua_setfield(L, -2, "name");
    lua_pushboolean(L, entry->is_folder);
    lua_setfield(L, -2, "is_folder");
    lua_pushnumber(L, (lua_Number)entry->size);
    lua_setfield(L, -2, "size");
    lua_pushnumber(L, (lua_Number)entry->mtime_s);
    lua_setfield(L, -2, "modified");
}

static int push_list(lua_State *L, struct ljob *ljob)
{
    const struct list_job *job     = container_of(ljob, struct list_job, ljob);
    const struct listing  *listing = &job->listing;

    if (job->outcome != FILES_FOUND) {
        lua_pushnil(L);
        lua_pushstring(L, OUTCOMES[job->outcome]);
        return 2;
    }
    lua_createtable(L, (int)listing->count, 0);
    for (unsigned i = 0; i < listing->count; i++) {
        push_entry(L, listing, &listing->entries[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_pushboolean(L, listing->is_cut);
    return 2;
}

/* list_folder(folder, path, shows_dotfiles) -> entries, is_cut | nil, outcome */
static int list_folder(lua_State *L)
{
    struct folder  **box  = luaL_checkudata(L, 1, METATABLE);
    struct str       path = lstr_check(L, 2);
    struct list_job *job;

    luaL_checktype(L, 3, LUA_TBOOLEAN);
    job                 = ljob_new(L, sizeof(*job) + path.len);
    job->ljob           = (struct ljob){ .work = list, .push = push_list, .free = free_list };
    job->folder         = *box;
    job->shows_dotfiles = lua_toboolean(L, 3);
    job->outcome        = FILES_MISSING;
    job->path_len       = path.len;
    memcpy(job->path, path.at, path.len);
    atomic_fetch_add(&(*box)->holders, 1);
    return ljob_start(L, &job->ljob, env_of(L)->lane_file);
}

/* --- paths ----------------------------------------------------------------------------------------------------- */

/* "%2f" is no slash to whoever guards a prefix: a file beneath it must not be had by that spelling. */
static bool hides_a_slash(struct str path)
{
    for (size_t i = 0; i + 3 <= path.len; i++)
        if (str_is_nocase(str_make(path.at + i, 3), STR("%2f")))
            return true;
    return false;
}

/* rest(req, pattern) -> what of the path a prefix leaves, decoded, without its first slash; nil: the
 * prefix does not cover it, or no file can have that path; false: an escape is broken */
static int rest(lua_State *L)
{
    struct lcall *call  = lcall_check(L, 1);
    struct str    path  = call->ex->request.path, left;
    ptrdiff_t     taken = route_prefix_match(lpattern_check(L, 2), path, lsite_accepts, call->site,
                                             &call->ex->arena, NULL);

    if (taken < 0)
        return 0;
    left = str_from(path, (size_t)taken);
    if (!url_escapes_are_sound(left)) {
        lua_pushboolean(L, false);
        return 1;
    }
    if (hides_a_slash(left))
        return 0;
    if (left.len && left.at[0] == '/')
        left = str_from(left, 1);
    left = url_decode(&call->ex->arena, left);
    lua_pushlstring(L, left.at ? left.at : "", left.len);
    return 1;
}

void lfile_register(lua_State *L)
{
    static const luaL_Reg FUNCTIONS[] = {
        { "folder", open_folder },
        { "find_file", find_file },
        { "list_folder", list_folder },
        { "rest", rest },
        { NULL, NULL },
    };

    luaL_newmetatable(L, METATABLE);
    lua_pushcfunction(L, collect);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
    luaL_register(L, NULL, FUNCTIONS);
}
