package search

import (
	"slices"
	"strings"
)

// fileTypes maps the names of file types to globs of file names. compat: the
// names are ripgrep's, and so is what the common ones cover.
var fileTypes = []struct{ names, globs string }{
	{"ada", "*.adb *.ads"},
	{"asciidoc", "*.adoc *.asc *.asciidoc"},
	{"asm", "*.asm *.s *.S"},
	{"bazel", "*.bazel *.bzl BUILD WORKSPACE *.BUILD MODULE.bazel BUILD.bazel WORKSPACE.bazel"},
	{"c", "*.[chH] *.[chH].in *.cats"},
	{"clojure", "*.clj *.cljc *.cljs *.cljx"},
	{"cmake", "*.cmake CMakeLists.txt"},
	{"config", "*.cfg *.conf *.config *.ini"},
	{"cpp", "*.[ChH] *.cc *.[ch]pp *.[ch]xx *.hh *.inl *.[ChH].in *.cc.in *.[ch]pp.in *.[ch]xx.in *.hh.in"},
	{"cs csharp", "*.cs"},
	{"css", "*.css *.scss"},
	{"csv", "*.csv"},
	{"cuda", "*.cu *.cuh"},
	{"d", "*.d"},
	{"dart", "*.dart"},
	{"diff", "*.patch *.diff"},
	{"docker", "*Dockerfile*"},
	{"dockercompose", "docker-compose.yml docker-compose.*.yml"},
	{"elisp", "*.el"},
	{"elixir", "*.ex *.eex *.exs *.heex *.leex *.livemd"},
	{"elm", "*.elm"},
	{"erlang erl", "*.erl *.hrl"},
	{"fish", "*.fish"},
	{"fortran", "*.f *.F *.f77 *.F77 *.pfo *.f90 *.F90 *.f95 *.F95"},
	{"fsharp", "*.fs *.fsx *.fsi"},
	{"gn", "*.gn *.gni"},
	{"go", "*.go"},
	{"gradle", "*.gradle *.gradle.kts gradle.properties gradle-wrapper.* gradlew gradlew.bat"},
	{"graphql", "*.graphql *.graphqls"},
	{"groovy", "*.groovy *.gradle"},
	{"h", "*.h *.hh *.hpp"},
	{"haskell hs", "*.hs *.lhs *.cpphs *.c2hs *.hsc"},
	{"html", "*.htm *.html *.ejs"},
	{"java", "*.java *.jsp *.jspx *.properties"},
	{"jl julia", "*.jl"},
	{"js", "*.js *.jsx *.vue *.cjs *.mjs"},
	{"json", "*.json composer.lock *.sarif"},
	{"jsonl", "*.jsonl"},
	{"jupyter", "*.ipynb *.jpynb"},
	{"kotlin", "*.kt *.kts"},
	{"less", "*.less"},
	{"license", "*LICENSE* *LICENCE* COPYING* NOTICE* PATENTS*"},
	{"lisp", "*.el *.jl *.lisp *.lsp *.sc *.scm"},
	{"lock", "*.lock package-lock.json"},
	{"log", "*.log"},
	{"lua", "*.lua"},
	{"make", "[Gg][Nn][Uu]makefile [Mm]akefile [Gg][Nn][Uu]makefile.am [Mm]akefile.am [Gg][Nn][Uu]makefile.in [Mm]akefile.in *.mk *.mak"},
	{"markdown md", "*.markdown *.md *.mdown *.mdx *.mkd *.mkdn *.mdwn"},
	{"matlab", "*.m"},
	{"meson", "meson.build meson_options.txt"},
	{"nim", "*.nim *.nimf *.nimble *.nims"},
	{"nix", "*.nix"},
	{"objc", "*.h *.m"},
	{"objcpp", "*.h *.mm"},
	{"ocaml", "*.ml *.mli *.mll *.mly"},
	{"org", "*.org *.org_archive"},
	{"pascal", "*.pas *.dpr *.lpr *.pp *.inc"},
	{"pdf", "*.pdf"},
	{"perl", "*.perl *.pl *.PL *.plh *.plx *.pm *.t"},
	{"php", "*.php *.php3 *.php4 *.php5 *.php7 *.php8 *.pht *.phtml"},
	{"protobuf", "*.proto"},
	{"ps", "*.cdxml *.ps1 *.ps1xml *.psd1 *.psm1"},
	{"py python", "*.py *.pyi"},
	{"r", "*.R *.r *.Rmd *.Rnw"},
	{"rst", "*.rst"},
	{"ruby rb", "config.ru Gemfile *.gemspec *.rb .irbrc Rakefile"},
	{"rust", "*.rs"},
	{"sass", "*.sass *.scss"},
	{"scala", "*.scala *.sbt"},
	{"sh", ".bash_login .bash_logout .bash_profile .bashrc .cshrc .kshrc .login .logout .profile .tcshrc .zlogin .zlogout .zprofile .zshenv .zshrc bash_login bash_logout bash_profile bashrc profile zlogin zlogout zprofile zshenv zshrc *.bash *.csh *.ksh *.sh *.tcsh *.zsh"},
	{"sol solidity", "*.sol"},
	{"sql", "*.sql *.psql"},
	{"svelte", "*.svelte"},
	{"svg", "*.svg"},
	{"swift", "*.swift"},
	{"systemd", "*.automount *.conf *.device *.link *.mount *.path *.scope *.service *.slice *.socket *.swap *.target *.timer"},
	{"tcl", "*.tcl"},
	{"tex", "*.tex *.ltx *.cls *.sty *.bib *.dtx *.ins"},
	{"tf terraform", "*.tf *.tf.json *.tfvars *.tfvars.json *.terraformrc terraform.rc .terraform.lock.hcl"},
	{"toml", "*.toml Cargo.lock"},
	{"ts typescript", "*.ts *.tsx *.cts *.mts"},
	{"tsx", "*.tsx"},
	{"jsx", "*.jsx"},
	{"txt", "*.txt"},
	{"vb", "*.vb"},
	{"verilog", "*.v *.vh *.sv *.svh"},
	{"vhdl", "*.vhd *.vhdl"},
	{"vim", "*.vim .vimrc .gvimrc vimrc gvimrc _vimrc _gvimrc"},
	{"vue", "*.vue"},
	{"xml", "*.xml *.xml.dist *.dtd *.xsl *.xslt *.xsd *.xjb *.rng *.sch *.xhtml"},
	{"yaml yml", "*.yaml *.yml"},
	{"zig", "*.zig"},
	{"zsh", ".zshenv .zlogin .zlogout .zprofile .zshrc zshenv zlogin zlogout zprofile zshrc *.zsh"},
}

func typeGlobs(name string) (globs string, ok bool) {
	for _, t := range fileTypes {
		for n := range strings.FieldsSeq(t.names) {
			if n == name {
				return t.globs, true
			}
		}
	}
	return "", false
}

func typeNames() string {
	var names []string
	for _, t := range fileTypes {
		names = append(names, strings.Fields(t.names)...)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
