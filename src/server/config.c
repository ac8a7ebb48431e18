#include "server/config.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/units.h"
#include "bind/lconfig.h"
#include "server/place.h"
#include "server/tls_pairs.h"

/* How a setting is described: the table below is the only place that knows. */
struct description {
    const char       *name;
    enum setting_kind kind;
    size_t            offset; /* of its member in struct config */
    const char       *fallback;
    uint64_t          min, max;
    const char       *words; /* " a b ": the only texts allowed, NULL: any */
    const char       *help;
};

#define AT(member) offsetof(struct config, member)
#define ANY        0, UINT64_MAX, NULL
#define HOURS(n)   ((n)*UINT64_C(3600000))
#define MIB(n)     ((n)*UINT64_C(1048576))
#define LEVELS     " trace debug info warn error fatal silent "
#define LONGEST_MS HOURS(24 * 365)
#define HEAD_MAX   UINT64_C(65535) /* spans of a head are 16 bits */

static const struct description DESCRIPTIONS[] = {
    /* clang-format off */
    { "host", SETTING_TEXT, AT(host), "127.0.0.1", ANY, "address to listen on" },
    { "port", SETTING_COUNT, AT(port), "8080", 0, 65535, NULL, "port; 0 takes a free one" },
    { "unix", SETTING_TEXT, AT(unix_path), "", ANY, "path of a Unix socket, instead of host and port" },
    { "workers", SETTING_COUNT, AT(workers), "0", 0, CONFIG_WORKERS_MAX, NULL, "worker threads; 0: one for each CPU" },
    { "dev", SETTING_SWITCH, AT(dev), "false", ANY, "error pages with code, pretty logs, stricter checks" },
    { "watch", SETTING_SWITCH, AT(watch), "true", ANY, "do not load the app anew when its files change" },
    { "single", SETTING_SWITCH, AT(single), "false", ANY, "no supervisor process, for debuggers" },
    { "drain_timeout", SETTING_DURATION, AT(drain_timeout_ms), "30s", 0, LONGEST_MS, NULL, "time for requests in hand at shutdown and reload" },
    { "timeout", SETTING_DURATION, AT(timeout_ms), "30s", 1, LONGEST_MS, NULL, "time to the head of an answer, then 503" },
    { "half_close", SETTING_DURATION, AT(half_close_ms), "500ms", 0, HOURS(1), NULL, "patience with a client that has ended its sending" },
    { "user", SETTING_TEXT, AT(user), "", ANY, "who to run as once the port is open; only root can" },
    { "proxy_protocol", SETTING_NETWORKS, AT(proxy_protocol), "", ANY, "networks whose connections begin with a PROXY protocol header" },
    { "cert", SETTING_FILES, AT(cert), "", ANY, "PEM file of a certificate and its chain: HTTPS; again for more" },
    { "key", SETTING_FILES, AT(key), "", ANY, "PEM file of its private key; empty: in the certificate's file" },
    { "client_ca", SETTING_TEXT, AT(client_ca), "", ANY, "PEM file of whoever signs clients' certificates" },
    { "client_cert", SETTING_TEXT, AT(client_cert), "none", 0, 0, " none optional required ", "whether clients show a certificate: optional, required" },
    { "http2", SETTING_SWITCH, AT(http2), "true", ANY, "HTTP/1.1 alone" },
    { "redirect_http", SETTING_PORT, AT(redirect_http), "false", 0, 65535, NULL, "second port, of plain HTTP, that leads to HTTPS; true: 80" },
    { "secret", SETTING_TEXT, AT(secret), "", ANY, "signs cookies; empty: made anew at each start" },
    { "log_level", SETTING_TEXT, AT(log_level), "info", 0, 0, LEVELS, "least level that is written" },
    { "log_format", SETTING_TEXT, AT(log_format), "auto", 0, 0, " auto json pretty ", "auto: pretty on a terminal" },
    { "log_file", SETTING_TEXT, AT(log_file), "", ANY, "path; empty: standard output" },
    { "admin", SETTING_SWITCH, AT(admin), "true", ANY, "no socket for srv flame, doctor and repl" },
    { "access_log", SETTING_SWITCH, AT(access_log), "true", ANY, "no line for each finished request" },
    { "shared", SETTING_SIZES, AT(shared), "cache=64MiB", ANY, "sizes of shared dictionaries by name" },
    { "handshake_timeout", SETTING_DURATION, AT(handshake_timeout_ms), "5s", 1, LONGEST_MS, NULL, "time for a TLS handshake, then closed" },
    { "line_limit", SETTING_BYTES, AT(line_limit), "8KiB", 16, HEAD_MAX, NULL, "request line, else 414" },
    { "head_limit", SETTING_BYTES, AT(head_limit), "32KiB", 256, HEAD_MAX, NULL, "request line and fields, else 431" },
    { "head_fields", SETTING_COUNT, AT(head_fields), "100", 1, 1000, NULL, "number of fields, else 431" },
    { "body_limit", SETTING_BYTES, AT(body_limit), "1MiB", 0, UINT64_C(1) << 50, NULL, "request body, else 413" },
    { "head_timeout", SETTING_DURATION, AT(head_timeout_ms), "10s", 1, LONGEST_MS, NULL, "time to receive a head, else 408" },
    { "body_timeout", SETTING_DURATION, AT(body_timeout_ms), "30s", 1, LONGEST_MS, NULL, "time without progress of a request body, else 408" },
    { "write_timeout", SETTING_DURATION, AT(write_timeout_ms), "30s", 1, LONGEST_MS, NULL, "time without progress of an answer, then cut" },
    { "keep_alive_timeout", SETTING_DURATION, AT(keep_alive_timeout_ms), "75s", 0, LONGEST_MS, NULL, "idle time before a connection is closed" },
    { "connections", SETTING_COUNT, AT(connections), "10000", 1, 1000000, NULL, "for each worker, else 503" },
    { "http2_streams", SETTING_COUNT, AT(http2_streams), "128", 1, 1000, NULL, "requests of one HTTP/2 connection at a time" },
    { "pipeline", SETTING_COUNT, AT(pipeline), "32", 1, 1000, NULL, "requests of one connection in one turn" },
    { "slice_warn", SETTING_DURATION, AT(slice_warn_ms), "100ms", 1, HOURS(1), NULL, "Lua that runs longer without waiting is named in the log" },
    { "slice_limit", SETTING_DURATION, AT(slice_limit_ms), "5s", 0, HOURS(1), NULL, "Lua that runs longer without waiting is stopped, with 503; 0: never" },
    { "lua_memory", SETTING_BYTES, AT(lua_memory), "512MiB", MIB(4), UINT64_C(1) << 46, NULL, "bound of each Lua state" },
    /* clang-format on */
};

static const struct description *find_description(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(DESCRIPTIONS); i++)
        if (strcmp(DESCRIPTIONS[i].name, name) == 0)
            return &DESCRIPTIONS[i];
    return NULL;
}

enum { NAME_MAX_LEN = 32 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Edits (insert, delete, replace, swap of neighbours) from one short name to another; longer ones are
 * far. */
static unsigned distance(const char *a, const char *b)
{
    unsigned rows[3][NAME_MAX_LEN + 1];
    size_t   len = strlen(b), count = strlen(a);

    if (count > NAME_MAX_LEN || len > NAME_MAX_LEN)
        return UINT_MAX;
    for (unsigned j = 0; j <= len; j++)
        rows[0][j] = j;
    for (unsigned i = 1; i <= count; i++) {
        unsigned *row = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= len; j++) {
            row[j] = least(last[j - 1] + (a[i - 1] != b[j - 1]), least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return rows[count % 3][len];
}

/* At most a third of it, or one letter, is written otherwise; NULL: none is near. */
static const char *nearest_name(const char *name)
{
    size_t      third   = strlen(name) / 3;
    const char *nearest = NULL;
    unsigned    best    = (unsigned)(third > 1 ? third : 1) + 1;

    for (size_t i = 0; i < ARRAY_LEN(DESCRIPTIONS); i++) {
        unsigned far = distance(name, DESCRIPTIONS[i].name);

        if (far < best) {
            best    = far;
            nearest = DESCRIPTIONS[i].name;
        }
    }
    return nearest;
}

static bool read_switch(struct str text, uint64_t *out)
{
    static const char *const YES = " true 1 on yes ", *const NO = " false 0 off no ";
    char padded[16];

    if (text.len > sizeof(padded) - 3)
        return false;
    snprintf(padded, sizeof(padded), " %.*s ", STR_ARG(text));
    *out = strstr(YES, padded) != NULL;
    return *out || strstr(NO, padded) != NULL;
}

static bool is_allowed_word(const struct description *about, const char *value)
{
    char padded[64];

    if (!about->words)
        return true;
    snprintf(padded, sizeof(padded), " %.60s ", value);
    return *value && !strchr(value, ' ') && strstr(about->words, padded) != NULL;
}

static bool are_sizes(struct str text)
{
    struct str name;
    uint64_t   bytes;

    while (text.len > 0)
        if (!units_next_size(&text, &name, &bytes))
            return false;
    return true;
}

static bool are_networks(struct str text)
{
    struct networks networks;
    struct str      wrong;

    return networks_parse(&networks, text, &wrong);
}

/* Commas part them, and blanks would be part of their names. */
static bool are_files(struct str text)
{
    struct str path;

    while (text.len > 0)
        if (!str_next(&text, ',', &path) || path.len == 0)
            return false;
    return true;
}

enum { PORT_OF_HTTP = 80 };

static bool read_port(struct str text, uint64_t *out)
{
    uint64_t yes;

    if (str_to_u64(text, UINT16_MAX, out))
        return true;
    if (!read_switch(text, &yes))
        return false;
    *out = yes ? PORT_OF_HTTP : CONFIG_NO_PORT;
    return true;
}

static bool read_number(const struct description *about, const char *value, uint64_t *out)
{
    struct str text = str_of(value);

    switch (about->kind) {
    case SETTING_SWITCH: return read_switch(text, out);
    case SETTING_COUNT: return str_to_u64(text, UINT64_MAX / 16, out);
    case SETTING_DURATION: return units_duration_ms(text, out);
    case SETTING_BYTES: return units_bytes(text, out);
    case SETTING_SIZES: return are_sizes(text);
    case SETTING_NETWORKS: return are_networks(text);
    case SETTING_FILES: return are_files(text);
    case SETTING_PORT: return read_port(text, out);
    case SETTING_TEXT: return is_allowed_word(about, value);
    }
    return false;
}

static const char *expected(const struct description *about)
{
    switch (about->kind) {
    case SETTING_SWITCH: return "true or false";
    case SETTING_COUNT: return "a whole number";
    case SETTING_DURATION: return "a duration such as 250ms, 5s or 10m";
    case SETTING_BYTES: return "a size such as 64KiB or 1MiB";
    case SETTING_SIZES: return "sizes by name such as cache=64MiB,jobs=1MiB";
    case SETTING_NETWORKS: return "networks such as loopback,private,192.0.2.0/24, at most 64";
    case SETTING_FILES: return "files such as cert.pem or a.pem,b.pem";
    case SETTING_PORT: return "a port, or true for port 80, or false";
    case SETTING_TEXT: return "a text";
    }
    return "a value";
}

/* Of the bounds. */
static const char *unit_of(const struct description *about)
{
    switch (about->kind) {
    case SETTING_DURATION: return " ms";
    case SETTING_BYTES: return " bytes";
    default: return "";
    }
}

static struct setting *setting_of(struct config *config, const struct description *about)
{
    return &config->settings[about - DESCRIPTIONS];
}

/* Writes the value into its member; TEXT stays alive with its setting. */
static void store(struct config *config, const struct description *about, struct setting *setting,
                  uint64_t number)
{
    void *member = (char *)config + about->offset;

    setting->number = about->kind == SETTING_DURATION ? (double)number / 1e3 : (double)number;
    switch (about->kind) {
    case SETTING_NETWORKS:
        networks_parse(member, str_of(setting->text), &(struct str){ 0 });
        return;
    case SETTING_PORT:
        setting->number     = number == CONFIG_NO_PORT ? -1 : (double)number;
        *(uint64_t *)member = number;
        return;
    case SETTING_FILES:
    case SETTING_SIZES:
    case SETTING_TEXT: *(const char **)member = setting->text; return;
    case SETTING_SWITCH: *(bool *)member = number != 0; return;
    default: *(uint64_t *)member = number; return;
    }
}

static bool has_bounds(enum setting_kind kind)
{
    return kind == SETTING_COUNT || kind == SETTING_DURATION || kind == SETTING_BYTES;
}

/* In config.lua certificates and keys stand in pairs, under a name that is no setting elsewhere; who
 * comes from another server may call them so. */
static bool means_certificates(const char *name)
{
    return strcmp(name, "tls") == 0 || strcmp(name, "ssl") == 0 || strcmp(name, "https") == 0;
}

/* "body_limit" -> "--body-limit" */
static void flag_name(const char *name, char *out, size_t room)
{
    snprintf(out, room, "--%s", name);
    for (char *at = out; *at; at++)
        *at = *at == '_' ? '-' : *at;
}

/* A flag has said its name already, and is led to one that is a flag too. */
static int unknown_setting(const char *name, const char *origin, struct err *err)
{
    const char *nearest                   = nearest_name(name);
    bool        is_flag                   = place_is_flag(origin);
    char        called[NAME_MAX_LEN + 48] = "", meant[NAME_MAX_LEN + 4] = "";

    if (!is_flag)
        snprintf(called, sizeof(called), " \"%.64s\"", name);
    if (means_certificates(name))
        return err_set(err, ERR_NOT_FOUND,
                       "%s: unknown setting%s: certificates are tls in config.lua, and cert and "
                       "key elsewhere",
                       origin, called);
    if (!nearest)
        return err_set(err, ERR_NOT_FOUND, "%s: unknown setting%s: srv --help lists all", origin,
                       called);
    if (is_flag)
        flag_name(nearest, meant, sizeof(meant));
    else
        snprintf(meant, sizeof(meant), "\"%s\"", nearest);
    return err_set(err, ERR_NOT_FOUND, "%s: unknown setting%s, did you mean %s?", origin, called,
                   meant);
}

static int wrong_value(const struct description *about, const char *value, const char *origin,
                       struct err *err)
{
    struct place place = place_of(origin, about->name);
    const char  *words = about->words;

    if (words)
        return err_set(err, ERR_INVALID, "%s is \"%s\", expected one of%.*s", place.text, value,
                       (int)strlen(words) - 1, words);
    return err_set(err, ERR_INVALID, "%s is \"%s\", expected %s", place.text, value,
                   expected(about));
}

int config_set(struct config *config, const char *name, const char *value, const char *origin,
               struct err *err)
{
    const struct description *about = find_description(name);
    struct setting           *setting;
    uint64_t                  number = 0;

    if (!about)
        return unknown_setting(name, origin, err);
    if (!read_number(about, value, &number))
        return wrong_value(about, value, origin, err);
    if (has_bounds(about->kind) && (number < about->min || number > about->max))
        return err_set(err, ERR_INVALID, "%s is %s, expected %" PRIu64 " to %" PRIu64 "%s",
                       place_of(origin, name).text, value, about->min, about->max, unit_of(about));
    setting = setting_of(config, about);
    free((char *)setting->text);
    free((char *)setting->origin);
    setting->text   = strdup(value);
    setting->origin = strdup(origin);
    if (!setting->text || !setting->origin)
        return err_set(err, ERR_MEMORY, "no memory for the configuration");
    store(config, about, setting, number);
    return 0;
}

void config_init(struct config *config)
{
    static_assert(ARRAY_LEN(DESCRIPTIONS) <= CONFIG_SETTINGS_MAX, "raise CONFIG_SETTINGS_MAX");
    memset(config, 0, sizeof(*config));
    config->setting_count = ARRAY_LEN(DESCRIPTIONS);
    for (size_t i = 0; i < ARRAY_LEN(DESCRIPTIONS); i++) {
        const struct description *about = &DESCRIPTIONS[i];
        struct err                err   = { 0 };

        config->settings[i] = (struct setting){ .name = about->name, .kind = about->kind };
        if (config_set(config, about->name, about->fallback, "default", &err) != 0) {
            fprintf(stderr, "srv: %s\n", err.text); /* a default of ours is wrong */
            abort();
        }
    }
}

void config_fini(struct config *config)
{
    for (unsigned i = 0; i < config->setting_count; i++) {
        free((char *)config->settings[i].text);
        free((char *)config->settings[i].origin);
    }
    config->setting_count = 0;
}

bool config_has(const char *name)
{
    return find_description(name) != NULL;
}

const char *config_origin(const struct config *config, const char *name)
{
    const struct description *about = find_description(name);

    assert(about);
    return config->settings[about - DESCRIPTIONS].origin;
}

bool config_is_switch(const char *name)
{
    const struct description *about = find_description(name);

    return about && about->kind == SETTING_SWITCH;
}

bool config_is_list(const char *name)
{
    const struct description *about = find_description(name);

    return about && (about->kind == SETTING_FILES || about->kind == SETTING_NETWORKS);
}

/* "body_limit" -> "SRV_BODY_LIMIT" */
static void variable_name(const char *name, char *out, size_t room)
{
    int used = snprintf(out, room, "SRV_%s", name);

    for (int i = 0; i < used && (size_t)i < room; i++)
        out[i] = (char)toupper((unsigned char)out[i]);
}

static int read_variable(struct config *config, const char *variable, const char *name,
                         struct err *err)
{
    const char *value = getenv(variable);

    return value && *value ? config_set(config, name, value, variable, err) : 0;
}

/* Read elsewhere, or by the tools around us. */
static const char OTHERS[] = " SRV_LUA_PATH SRV_DNS_SERVERS ";

static bool is_known_variable(const char *variable, const char *name)
{
    char padded[80];

    if (find_description(name)) {
        variable_name(name, padded, sizeof(padded));
        return strcmp(variable, padded) == 0; /* SRV_port is not read */
    }
    snprintf(padded, sizeof(padded), " %.70s ", variable);
    return strstr(OTHERS, padded) != NULL;
}

/* Near enough for a slip: a letter of a short name, two of a longer one. */
static bool is_slip(const char *name, const char *nearest)
{
    return distance(name, nearest) <= (strlen(nearest) < 6 ? 1 : 2);
}

/* A variable of ours that is none: what looks like a slip is an error, as in config.lua; others may
 * be the app's own, or of the machinery around it. */
static int check_variable(const char *variable, size_t len, struct err *err)
{
    char        whole[64], name[64];
    const char *nearest;

    if (len >= sizeof(whole))
        return 0;
    snprintf(whole, sizeof(whole), "%.*s", (int)len, variable);
    for (size_t i = 4; i <= len; i++)
        name[i - 4] = (char)tolower((unsigned char)whole[i]);
    if (is_known_variable(whole, name))
        return 0;
    nearest = nearest_name(name);
    if (nearest && is_slip(name, nearest)) {
        char meant[64];

        variable_name(nearest, meant, sizeof(meant));
        return err_set(err, ERR_NOT_FOUND, "%s: unknown setting, did you mean %s?", whole, meant);
    }
    fprintf(stderr, "srv: warning: the variable %s is no setting of srv\n", whole);
    return 0;
}

static int check_variables(struct err *err)
{
    int rc = 0;

    for (char **at = environ; *at && rc == 0; at++)
        if (strncmp(*at, "SRV_", 4) == 0)
            rc = check_variable(*at, strcspn(*at, "="), err);
    return rc;
}

int config_read_environment(struct config *config, struct err *err)
{
    char variable[64];
    int  rc;

    rc = read_variable(config, "PORT", "port", err);
    if (rc == 0)
        rc = read_variable(config, "HOST", "host", err);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(DESCRIPTIONS); i++) {
        variable_name(DESCRIPTIONS[i].name, variable, sizeof(variable));
        rc = read_variable(config, variable, DESCRIPTIONS[i].name, err);
    }
    return rc == 0 ? check_variables(err) : rc;
}

struct file_reading {
    struct config *config;
    const char    *path;
};

/* tls = { { cert = "a.pem", key = "a.key" } } */
static int set_pairs(struct file_reading *reading, const char *value, struct err *err)
{
    struct tls_pairs pairs;
    struct err       why = { 0 };
    int              rc  = tls_pairs_read(&pairs, str_of(value), &why);

    if (rc != 0)
        return err_set(err, rc, "%s: %s", reading->path, why.text);
    rc = config_set(reading->config, "cert", pairs.certs, reading->path, err);
    return rc == 0 ? config_set(reading->config, "key", pairs.keys, reading->path, err) : rc;
}

static int set_from_file(const char *name, const char *value, void *arg, struct err *err)
{
    struct file_reading      *reading = arg;
    const struct description *about   = find_description(name);

    if (strcmp(name, "tls") == 0)
        return set_pairs(reading, value ? value : "", err);
    if (!value && about && !config_is_list(name))
        return err_set(err, ERR_INVALID, "%s: %s must be a text or a list of texts", reading->path,
                       name);
    return config_set(reading->config, name, value ? value : "", reading->path, err);
}

int config_read_file(struct config *config, struct err *err)
{
    char                path[PATH_MAX + 16];
    struct file_reading reading = { config, path };
    int                 rc;

    snprintf(path, sizeof(path), "%s/config.lua", config->app_root);
    if (access(path, F_OK) != 0)
        return 0;
    rc = lconfig_read(path, set_from_file, &reading, err);
    return rc;
}

int config_set_app(struct config *config, const char *path, struct err *err)
{
    struct stat about;
    char       *slash;

    if (!realpath(path, config->app_root))
        return err_set_errno(err, "no app at %s", path);
    if (stat(config->app_root, &about) != 0)
        return err_set_errno(err, "%s", config->app_root);
    if (S_ISDIR(about.st_mode)) {
        snprintf(config->app_file, sizeof(config->app_file), "%.4000s/app.lua", config->app_root);
        if (access(config->app_file, F_OK) != 0)
            config->app_file[0] = '\0';
        return 0;
    }
    snprintf(config->app_file, sizeof(config->app_file), "%s", config->app_root);
    slash                            = strrchr(config->app_root, '/');
    slash[slash == config->app_root] = '\0';
    return 0;
}

void config_describe(struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(DESCRIPTIONS); i++) {
        const struct description *about = &DESCRIPTIONS[i];
        char                      flag[40];
        bool                      on = strcmp(about->fallback, "true") == 0;

        snprintf(flag, sizeof(flag), "--%s%s%s", about->kind == SETTING_SWITCH && on ? "no-" : "",
                 about->name, about->kind == SETTING_SWITCH ? "" : " V");
        for (char *at = flag; *at; at++)
            *at = *at == '_' ? '-' : *at;
        buf_printf(out, "  %-24s %s", flag, about->help);
        if (about->kind != SETTING_SWITCH && *about->fallback)
            buf_printf(out, " (%s)", about->fallback);
        buf_add_byte(out, '\n');
    }
}
