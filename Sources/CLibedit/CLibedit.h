// Libedit, and wrappers of its variadic functions, which Swift can't call.
#pragma once

#if !__has_include(<histedit.h>)
#error "Libedit is missing: sudo apt-get install libedit-dev libpq-dev libsqlite3-dev libssl-dev libsystemd-dev libyaml-dev pkg-config zlib1g-dev"
#endif
#include <histedit.h>
#include <stdio.h>

typedef char *(*editor_prompt)(EditLine *editor);
typedef unsigned char (*editor_function)(EditLine *editor, int key);
// Stores the next character that is typed and returns 1, or returns 0 at the end.
typedef int (*editor_reader)(EditLine *editor, wchar_t *character);

// An editor of standard input.
static inline EditLine *editor_make(const char *program) { return el_init(program, stdin, stdout, stderr); }

// The owner is the object that an editor's functions can access.
static inline void editor_set_owner(EditLine *editor, void *owner) { el_set(editor, EL_CLIENTDATA, owner); }

static inline void *editor_owner(EditLine *editor) {
  void *owner = NULL;
  el_get(editor, EL_CLIENTDATA, &owner);
  return owner;
}

static inline void editor_set_prompt(EditLine *editor, editor_prompt prompt) { el_set(editor, EL_PROMPT, prompt); }

// Sets the key bindings of Emacs. The keys that would send signals are ordinary keys while a line is edited. Libedit's
// own handling of signals must stay off: it edits the line in the signal handler, whatever another thread is doing.
static inline void editor_set_keys(EditLine *editor) {
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_SETTY, "-d", "-isig", NULL);
}

static inline void editor_set_reader(EditLine *editor, editor_reader reader) { el_set(editor, EL_GETCFN, reader); }

// Puts the terminal into raw mode at once. On its own, el_gets does so only after it has shown the prompt.
static inline void editor_prepare(EditLine *editor) { el_set(editor, EL_PREP_TERM, 1); }

// Gives the terminal back its settings.
static inline void editor_restore(EditLine *editor) { el_set(editor, EL_PREP_TERM, 0); }

// Shows the line again, at the cursor.
static inline void editor_refresh(EditLine *editor) { el_set(editor, EL_REFRESH); }

static inline void editor_bind(EditLine *editor, const char *key, const char *command) {
  el_set(editor, EL_BIND, key, command, NULL);
}

static inline void editor_add(EditLine *editor, const char *name, const char *help, editor_function function) {
  el_set(editor, EL_ADDFN, name, help, function);
}

static inline void editor_set_history(EditLine *editor, History *lines) { el_set(editor, EL_HIST, history, lines); }

static inline void history_set_limit(History *lines, int count) {
  HistEvent event;
  history(lines, &event, H_SETSIZE, count);
}

static inline void history_enter(History *lines, const char *line) {
  HistEvent event;
  history(lines, &event, H_ENTER, line);
}

// Writes out everything that was printed.
static inline void flush_standard_output(void) { fflush(stdout); }
