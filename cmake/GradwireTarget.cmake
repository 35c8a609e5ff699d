# Settings that every target of this project shares. A consumer of the library inherits none of them.

if(GRADWIRE_SANITIZE)
  add_compile_options(-fsanitize=${GRADWIRE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${GRADWIRE_SANITIZE})
endif()

set(gradwire_compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")

# Warnings, the language, and floating-point arithmetic that gives the same bytes everywhere:
# no contraction into FMA behind our back (see docs/format.md), never -ffast-math.
function(gradwire_target target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -ffp-contract=off)
  # GCC 12 warns of overlapping copies inside std::string's operator+ (its bug 105651).
  target_compile_options(${target} PRIVATE
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
  # Only of the compilers that CI uses: a newer one may know warnings that nobody has seen yet.
  if(GRADWIRE_WERROR AND gradwire_compiler MATCHES "^(GNU 12|Clang 14)\\.")
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
