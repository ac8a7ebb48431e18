/* hiredis calls the functions below as it finds the parts of a reply, an array before its elements:
 * they write nodes, so that no object of hiredis' own is made. To hiredis they return a mark that
 * nobody looks at.
 *
 * Its own connections are not used: they resolve names in a blocking way and, up to 1.0, know no
 * time limits (CORE, fact 11). */
#include "data/redis_reader.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <hiredis/hiredis.h>

#include "base/buf.h"
#include "base/err.h"
#include "data/redis_reply.h"

#define TEXT_OF_2(value) #value
#define TEXT_OF(value)   TEXT_OF_2(value)

/* Up to 0.14 lengths of arrays are int and those of strings size_t, since 1.0 both are size_t. */
#if HIREDIS_MAJOR >= 1
typedef size_t array_len;
#else
typedef int array_len;
#endif

enum { COPIED_BYTES_MAX = 4096 };

struct library {
    redisReader *(*make)(redisReplyObjectFunctions *functions);
    void (*drop)(redisReader *reader);
    int (*feed)(redisReader *reader, const char *bytes, size_t len);
    int (*get)(redisReader *reader, void **reply);
};

struct redis_reader {
    redisReader *reader;
    struct buf   reply; /* as far as it was read */
    size_t       fed;   /* bytes since the last whole reply */
    bool         is_too_deep;
    bool         is_entered, is_closed;
};

/* --- the library ------------------------------------------------------------------------------- */

/* Set once, then constant: a shared object is the process's, whoever asks first. */
static struct library library;
static pthread_once_t loaded = PTHREAD_ONCE_INIT;

static void load(void)
{
    void *handle = dlopen(SRV_LIBHIREDIS, RTLD_NOW | RTLD_LOCAL);

    if (!handle)
        return;
    *(void **)&library.make = dlsym(handle, "redisReaderCreateWithFunctions");
    *(void **)&library.drop = dlsym(handle, "redisReaderFree");
    *(void **)&library.feed = dlsym(handle, "redisReaderFeed");
    *(void **)&library.get  = dlsym(handle, "redisReaderGetReply");
}

static bool is_loaded(void)
{
    pthread_once(&loaded, load);
    return library.make && library.drop && library.feed && library.get;
}

const char *redis_reader_library(void)
{
    return "hiredis " TEXT_OF(HIREDIS_MAJOR) "." TEXT_OF(HIREDIS_MINOR) "." TEXT_OF(HIREDIS_PATCH);
}

/* --- nodes ------------------------------------------------------------------------------------- */

/* NULL tells hiredis that there is no memory, which ends the reader. */
static void *add(const redisReadTask *part, enum reply_kind kind, int64_t number, struct str text)
{
    struct redis_reader *self = part->privdata;

    reply_add(&self->reply, kind, number, text);
    return self->reply.failed ? NULL : self;
}

static void *add_string(const redisReadTask *part, char *at, size_t len)
{
    enum reply_kind kind = part->type == REDIS_REPLY_ERROR    ? REPLY_FAULT
                           : part->type == REDIS_REPLY_STATUS ? REPLY_STATUS
                                                              : REPLY_TEXT;

    return add(part, kind, 0, str_make(at, len));
}

/* Up to 0.14 hiredis stops at seven itself. */
static bool is_too_deep(const redisReadTask *part)
{
    unsigned depth = 0;

    for (; part->parent && depth < REDIS_REPLY_DEPTH_MAX; part = part->parent)
        depth++;
    return depth == REDIS_REPLY_DEPTH_MAX;
}

static void *add_array(const redisReadTask *part, array_len count)
{
    struct redis_reader *self = part->privdata;

    if (is_too_deep(part)) {
        self->is_too_deep = true;
        return NULL;
    }
    return add(part, REPLY_ARRAY, (int64_t)count, STR_NONE);
}

static void *add_integer(const redisReadTask *part, long long value)
{
    return add(part, REPLY_INTEGER, value, STR_NONE);
}

static void *add_nil(const redisReadTask *part)
{
    return add(part, REPLY_NIL, 0, STR_NONE);
}

/* RESP3, which we do not ask for; a node must stand there all the same. */
#ifdef REDIS_REPLY_DOUBLE
static void *add_double(const redisReadTask *part, double value, char *at, size_t len)
{
    return add(part, REPLY_TEXT, 0, str_make(at, len));
}

static void *add_bool(const redisReadTask *part, int value)
{
    return add(part, REPLY_INTEGER, value, STR_NONE);
}
#endif

static void free_nothing(void *object)
{
}

static const redisReplyObjectFunctions FUNCTIONS = {
    .createString  = add_string,
    .createArray   = add_array,
    .createInteger = add_integer,
    .createNil     = add_nil,
#ifdef REDIS_REPLY_DOUBLE
    .createDouble = add_double,
    .createBool   = add_bool,
#endif
    .freeObject = free_nothing,
};

/* --- a reader ------------------------------------------------------------------------------------ */

int redis_reader_open(struct redis_reader **out, struct err *err)
{
    struct redis_reader *self;

    if (!is_loaded())
        return err_set(
            err, ERR_UNSUPPORTED,
            "%s is not installed: Debian's package libhiredis-dev or libhiredis brings it",
            SRV_LIBHIREDIS);
    self = calloc(1, sizeof(*self));
    if (!self)
        return err_set(err, ERR_MEMORY, "out of memory");
    buf_init(&self->reply, REDIS_REPLY_BYTES_MAX);
    self->reader = library.make((redisReplyObjectFunctions *)&FUNCTIONS);
    if (!self->reader) {
        free(self);
        return err_set(err, ERR_MEMORY, "out of memory");
    }
    self->reader->privdata = self; /* hiredis' macro for it casts a pointer to int */
    *out                   = self;
    return 0;
}

void redis_reader_close(struct redis_reader *self)
{
    if (!self)
        return;
    self->is_closed = true;
    if (self->is_entered)
        return;
    library.drop(self->reader);
    buf_fini(&self->reply);
    free(self);
}

void redis_reader_enter(struct redis_reader *self)
{
    self->is_entered = true;
}

bool redis_reader_is_open(const struct redis_reader *self)
{
    return !self->is_closed;
}

bool redis_reader_leave(struct redis_reader *self)
{
    self->is_entered = false;
    if (!self->is_closed)
        return true;
    redis_reader_close(self);
    return false;
}

static int fail(struct redis_reader *self, struct err *err)
{
    if (self->reply.failed)
        return err_set(err, ERR_TOO_LARGE, "a reply of more than %d MiB",
                       REDIS_REPLY_BYTES_MAX / 1024 / 1024);
    if (self->is_too_deep)
        return err_set(err, ERR_TOO_LARGE, "arrays in a reply, nested deeper than %d",
                       REDIS_REPLY_DEPTH_MAX);
    if (self->reader->err == REDIS_ERR_OOM)
        return err_set(err, ERR_MEMORY, "out of memory");
    return err_set(err, ERR_INVALID, "this is not the protocol of Redis: %s", self->reader->errstr);
}

/* The sum is bounded, since a long string is kept by hiredis until it is whole. */
int redis_reader_feed(struct redis_reader *self, const void *bytes, size_t len, struct err *err)
{
    if (self->fed > REDIS_REPLY_BYTES_MAX)
        self->reply.failed = true;
    if (self->reply.failed || library.feed(self->reader, bytes, len) != REDIS_OK)
        return fail(self, err);
    self->fed += len;
    return 0;
}

/* A large one changes hands; a small one is copied, and the reader keeps its memory. */
static void hand_over(struct redis_reader *self, struct buf *reply)
{
    if (!reply->at && self->reply.len > COPIED_BYTES_MAX) {
        *reply = self->reply;
        buf_init(&self->reply, REDIS_REPLY_BYTES_MAX);
        return;
    }
    buf_add(reply, self->reply.at, self->reply.len);
    buf_clear(&self->reply);
}

int redis_reader_next(struct redis_reader *self, struct buf *reply, struct err *err)
{
    void *object = NULL;

    if (library.get(self->reader, &object) != REDIS_OK)
        return fail(self, err);
    if (!object)
        return 0;
    self->fed = 0;
    hand_over(self, reply);
    return reply->failed ? err_set(err, ERR_TOO_LARGE, "a reply of more than %d MiB",
                                   REDIS_REPLY_BYTES_MAX / 1024 / 1024)
                         : 1;
}
