/* server/config.h - every setting of the server: its name, kind, default, where its value came from.
 *
 * One table describes them all; flags, environment, config.lua, `--help` and `srv.config` are made
 * from it. Precedence: flag > environment > config.lua > default. A wrong value is an error that
 * names the setting, the value and its origin. */
#ifndef SERVER_CONFIG_H
#define SERVER_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "bind/env.h"
#include "net/networks.h"

struct buf;
struct err;

enum { CONFIG_SETTINGS_MAX = 64, CONFIG_WORKERS_MAX = 256 };

#define CONFIG_NO_PORT UINT64_MAX

struct config {
    /* the service */
    const char *host;
    uint64_t    port;      /* 0: any free one */
    const char *unix_path; /* "" = TCP */
    uint64_t    workers;
    bool        dev;
    bool        watch;
    bool        single; /* no supervisor */
    uint64_t    drain_timeout_ms;
    uint64_t    timeout_ms;
    uint64_t    half_close_ms;
    const char *user;   /* who it runs as once root has bound its port; "": nobody else */
    const char *secret; /* signs cookies; empty: one is made at start */
    const char *log_level;
    const char *log_format;
    const char *log_file;
    bool        admin;
    bool        access_log;
    const char *shared; /* sizes of shared dictionaries: "cache=64MiB" */
    /* who says first for whom he speaks, by the PROXY protocol */
    struct networks proxy_protocol;
    /* TLS (server/tls_files.h reads them) */
    const char *cert;      /* PEM files, by commas; "": plain HTTP */
    const char *key;       /* one for each; "": they are in the same files */
    const char *client_ca; /* who signs clients' certificates; "": nobody is asked for one */
    const char *client_cert;
    bool        http2;
    uint64_t redirect_http; /* a second port, of plain HTTP, that leads here; or CONFIG_NO_PORT */
    /* limits */
    uint64_t handshake_timeout_ms;
    uint64_t line_limit;
    uint64_t head_limit;
    uint64_t head_fields;
    uint64_t body_limit;
    uint64_t head_timeout_ms;
    uint64_t body_timeout_ms;
    uint64_t write_timeout_ms;
    uint64_t keep_alive_timeout_ms;
    uint64_t connections;
    uint64_t http2_streams;
    uint64_t pipeline;
    uint64_t slice_warn_ms;
    uint64_t slice_limit_ms; /* 0: none */
    uint64_t lua_memory;

    /* not settings: what the command named */
    char app_root[4096]; /* absolute path of the folder */
    char app_file[4096]; /* absolute path of app.lua, of the one file, or "" for static files */

    struct setting settings[CONFIG_SETTINGS_MAX]; /* the same values as text, for srv.config */
    unsigned       setting_count;
};

/* Values are set in order of precedence, highest last: defaults, then the file, and so on. */
void config_init(struct config *config);
void config_fini(struct config *config);

/* NAME is spelled as in config.lua ("body_limit"). ORIGIN is for messages: "--body-limit",
 * "SRV_BODY_LIMIT", "config.lua". ERR_NOT_FOUND: no such setting (the text names the nearest);
 * ERR_INVALID: not a value of its kind. */
int config_set(struct config *config, const char *name, const char *value, const char *origin,
               struct err *err);

/* Whether there is a setting NAME. */
bool config_has(const char *name);

/* Where a setting's value came from: "--host", "HOST", "config.lua", "default". NAME is one of ours. */
const char *config_origin(const struct config *config, const char *name);

/* Whether NAME is a yes-or-no setting, so that its flag takes no value. */
bool config_is_switch(const char *name);

/* Whether NAME is a list, so that its flag may be given again. */
bool config_is_list(const char *name);

/* SRV_NAME for each setting, and PORT and HOST. Another SRV_... that is nearly one of these is
 * ERR_NOT_FOUND; any other is warned of on standard error. */
int config_read_environment(struct config *config, struct err *err);
/* config.lua beside the app, if there is one. */
int config_read_file(struct config *config, struct err *err);

/* "8080" beats config.lua: sets app_root and app_file from a path as typed. */
int config_set_app(struct config *config, const char *path, struct err *err);

/* One line for each setting, for --help. */
void config_describe(struct buf *out);

#endif
