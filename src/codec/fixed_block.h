// Block codecs of fixed width (docs/format.md section 4).
#ifndef GRADWIRE_CODEC_FIXED_BLOCK_H_
#define GRADWIRE_CODEC_FIXED_BLOCK_H_

#include <cstddef>
#include <span>

#include "codec/block_codec.h"

namespace gradwire::internal {

struct CodedScratch;

// Signatures as in registry.h: encode returns false when the block needs more than out.size()
// bytes; decode checks every length against `bytes` before it reads.
bool encode_cast_block(const BlockContext& context, std::span<const Piece> pieces,
                       CodedScratch& scratch, std::span<std::byte> out, BlockEntry* entry);
Status decode_cast_block(const BlockContext& context, const BlockEntry& entry,
                         std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                         CodedScratch& scratch);

bool encode_int_block(const BlockContext& context, std::span<const Piece> pieces,
                      CodedScratch& scratch, std::span<std::byte> out, BlockEntry* entry);
Status decode_int_block(const BlockContext& context, const BlockEntry& entry,
                        std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                        CodedScratch& scratch);

bool encode_natural_block(const BlockContext& context, std::span<const Piece> pieces,
                          CodedScratch& scratch, std::span<std::byte> out, BlockEntry* entry);
Status decode_natural_block(const BlockContext& context, const BlockEntry& entry,
                            std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                            CodedScratch& scratch);

// mxfp8 and mxfp4; terngrad is levels.
bool encode_mx_block(const BlockContext& context, std::span<const Piece> pieces,
                     CodedScratch& scratch, std::span<std::byte> out, BlockEntry* entry);
Status decode_mx_block(const BlockContext& context, const BlockEntry& entry,
                       std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                       CodedScratch& scratch);

bool encode_levels_block(const BlockContext& context, std::span<const Piece> pieces,
                         CodedScratch& scratch, std::span<std::byte> out, BlockEntry* entry);
Status decode_levels_block(const BlockContext& context, const BlockEntry& entry,
                           std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                           CodedScratch& scratch);

bool encode_qsgd_block(const BlockContext& context, std::span<const Piece> pieces,
                       CodedScratch& scratch, std::span<std::byte> out, BlockEntry* entry);
Status decode_qsgd_block(const BlockContext& context, const BlockEntry& entry,
                         std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                         CodedScratch& scratch);

bool encode_sign_block(const BlockContext& context, std::span<const Piece> pieces,
                       CodedScratch& scratch, std::span<std::byte> out, BlockEntry* entry);
Status decode_sign_block(const BlockContext& context, const BlockEntry& entry,
                         std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                         CodedScratch& scratch);

bool encode_hadamard_block(const BlockContext& context, std::span<const Piece> pieces,
                           CodedScratch& scratch, std::span<std::byte> out, BlockEntry* entry);
Status decode_hadamard_block(const BlockContext& context, const BlockEntry& entry,
                             std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                             CodedScratch& scratch);

bool encode_top_k_block(const BlockContext& context, std::span<const Piece> pieces,
                        CodedScratch& scratch, std::span<std::byte> out, BlockEntry* entry);
Status decode_top_k_block(const BlockContext& context, const BlockEntry& entry,
                          std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                          CodedScratch& scratch);

bool encode_cocktail_block(const BlockContext& context, std::span<const Piece> pieces,
                           CodedScratch& scratch, std::span<std::byte> out, BlockEntry* entry);
Status decode_cocktail_block(const BlockContext& context, const BlockEntry& entry,
                             std::span<const std::byte> bytes, std::span<const PieceOut> pieces,
                             CodedScratch& scratch);

}  // namespace gradwire::internal

#endif  // GRADWIRE_CODEC_FIXED_BLOCK_H_
